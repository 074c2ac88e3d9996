"""The model against what is known exactly."""

import math

import pytest

from rqueue.errors import ConfigError
from rqueue.pipeline.plan.queueing import (
    Load,
    delay_probability,
    erlang_c,
    mean_wait,
    wait_quantile,
    workers_for,
)


def c_by_definition(c: int, a: float) -> float:
    top = a**c / math.factorial(c) * c / (c - a)
    return top / (sum(a**k / math.factorial(k) for k in range(c)) + top)


@pytest.mark.parametrize(
    ("c", "a"), [(1, 0.3), (1, 0.99), (2, 1.5), (5, 4.0), (20, 18.0), (60, 50)]
)
def test_erlang_c_is_its_definition(c: int, a: float) -> None:
    assert erlang_c(c, a) == pytest.approx(c_by_definition(c, a), rel=1e-9)


def test_erlang_c_at_the_ends() -> None:
    assert erlang_c(3, 3.0) == erlang_c(3, 4.0) == 1.0
    assert erlang_c(10_000, 9_000.0) < 1e-12


def test_erlang_c_of_many_workers_is_that_of_halfin_and_whitt() -> None:
    a, c = 39_900.0, 40_000
    beta = (c - a) / math.sqrt(a)
    density = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi)
    below = 1 - math.erfc(beta / math.sqrt(2)) / 2
    assert erlang_c(c, a) == pytest.approx(1 / (1 + beta * below / density), rel=0.01)


@pytest.mark.parametrize(("c", "rate"), [(1, 0.5), (1, 0.9), (4, 3.0), (10, 9.0)])
def test_m_m_c_is_exact(c: int, rate: float) -> None:
    load = Load(rate, 1.0)
    waiting = c_by_definition(c, rate)
    assert delay_probability(load, c) == pytest.approx(waiting, rel=1e-9)
    assert mean_wait(load, c) == pytest.approx(waiting / (c - rate), rel=1e-9)
    # P(W > t) = C·exp(-(cμ-λ)t): at the quantile it is what is left
    at = wait_quantile(load, c, 0.95)
    assert waiting * math.exp(-(c - rate) * at) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("cv2", [0.0, 0.5, 1.0, 4.0])
def test_the_mean_of_m_g_1_is_that_of_pollaczek_and_khinchine(cv2: float) -> None:
    rate, run = 0.8, 1.0
    exact = rate * run**2 * (1 + cv2) / (2 * (1 - rate * run))
    assert mean_wait(Load(rate, run, 1.0, cv2), 1) == pytest.approx(exact, rel=1e-9)


def test_time_has_no_unit() -> None:
    slow, fast = Load(2.0, 1.5, 3.0, 2.0), Load(2000.0, 0.0015, 3.0, 2.0)
    assert wait_quantile(slow, 4, 0.9) == pytest.approx(1000 * wait_quantile(fast, 4, 0.9))


def test_bursts_and_long_runs_make_jobs_wait() -> None:
    quiet = wait_quantile(Load(8, 1.0), 10, 0.95)
    assert wait_quantile(Load(8, 1.0, 4.0, 1.0), 10, 0.95) > 2 * quiet
    assert wait_quantile(Load(8, 1.0, 1.0, 4.0), 10, 0.95) > 2 * quiet
    assert wait_quantile(Load(8, 1.0, 0.0, 0.0), 10, 0.95) == 0.0


def test_more_than_can_be_done_waits_for_ever() -> None:
    assert wait_quantile(Load(2, 1.0), 2, 0.5) == math.inf
    assert mean_wait(Load(3, 1.0), 2) == math.inf


@pytest.mark.parametrize("target", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("load", [Load(4, 1.0), Load(0.1, 1.0, 9.0, 2.0), Load(300, 0.5, 2.0, 5.0)])
def test_the_fewest_workers_are_the_fewest(load: Load, target: float) -> None:
    workers = workers_for(load, target, 0.95)
    assert wait_quantile(load, workers, 0.95) <= target
    assert workers == 1 or wait_quantile(load, workers - 1, 0.95) > target


@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, 1), (1, math.inf), (math.nan, 1)])
def test_a_wrong_load_is_named(wrong: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="positive"):
        Load(*wrong)


def test_what_nobody_would_start_is_refused() -> None:
    with pytest.raises(ConfigError, match="split the queue"):
        workers_for(Load(1e6, 1.0), 1.0, 0.95)
