"""The simulation against what is known exactly, and against itself."""

import heapq
import math
from statistics import fmean, stdev

import numpy as np
import pytest
from numpy.typing import NDArray

from rqueue.pipeline.plan.queueing import Load, erlang_c, mean_wait, wait_quantile
from rqueue.pipeline.plan.simulate import (
    Outcome,
    ParameterSet,
    Workload,
    draw,
    simulate,
    waits,
)

Floats = NDArray[np.float64]

EXPONENTIAL: Floats = -np.log(1 - (np.arange(100_000) + 0.5) / 100_000)
"""Runs of mean 1 without memory, as their quantiles."""

CONSTANT: Floats = np.ones(10)
GAPS: Floats = np.ones(10)


def many(work: Workload, workers: int, kind: str = "fitted", count: int = 60) -> list[Outcome]:
    return simulate(work, [ParameterSet(i, kind, workers, 1.0, i) for i in range(count)])


def agrees(values: list[float], exact: float) -> None:
    """Within four standard errors: 1 run in 16,000 would fail by chance, and the seed is fixed."""
    error = stdev(values) / math.sqrt(len(values))
    assert abs(fmean(values) - exact) < 4 * error
    assert error < 0.05 * exact, "the test would see a difference of a fifth"


@pytest.mark.parametrize(("workers", "rate"), [(1, 0.7), (5, 4.0), (20, 18.0)])
def test_m_m_c(workers: int, rate: float) -> None:
    found = many(Workload(GAPS, EXPONENTIAL, rate, 1.0), workers)
    load = Load(rate, 1.0)
    agrees([one.mean for one in found], mean_wait(load, workers))
    agrees([one.wait for one in found], wait_quantile(load, workers, 0.95))
    agrees([one.busy for one in found], rate / workers)


def test_m_d_1() -> None:
    found = many(Workload(GAPS, CONSTANT, 0.8, 1.0), 1)
    agrees([one.mean for one in found], 0.8 / (2 * (1 - 0.8)))


def test_the_share_that_waits_in_m_m_c() -> None:
    work = Workload(GAPS, EXPONENTIAL, 4.0, 1.0, jobs=20_000)
    shares = []
    for repetition in range(40):
        gaps, runs = draw(work, ParameterSet(0, "fitted", 5, 1.0, repetition))
        waited = waits(gaps[:, None], runs[:, None], np.array([5]))[2000:]
        shares.append(float((waited > 0).mean()))
    agrees(shares, erlang_c(5, 4.0))


@pytest.mark.parametrize("cv2", [0.0, 0.25, 1.0, 6.0])
def test_fitted_arrivals_have_the_rate_and_burstiness(cv2: float) -> None:
    work = Workload(GAPS, EXPONENTIAL, 5.0, cv2, jobs=400_000)
    gaps, runs = draw(work, ParameterSet(0, "fitted", 1, 2.0, 0))
    assert gaps.mean() == pytest.approx(1 / 10, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(cv2, rel=0.05, abs=1e-9)
    assert runs.mean() == pytest.approx(1.0, rel=0.02)


def test_measured_arrivals_are_repeated_as_they_are() -> None:
    gaps = np.array([1.0, 2.0, 3.0, 4.0])
    work = Workload(gaps, CONSTANT, 0.4, 1.0, jobs=1000)
    drawn, _ = draw(work, ParameterSet(0, "measured", 1, 2.0, 7))
    first = int(drawn[0] * 2) - 1
    assert list(drawn * 2) == [gaps[(first + i) % 4] for i in range(1000)]


def by_a_heap(gaps: Floats, runs: Floats, workers: int) -> list[float]:
    free = [0.0] * workers
    now, waited = 0.0, []
    for gap, run in zip(gaps, runs, strict=True):
        now += gap
        begin = max(now, free[0])
        heapq.heapreplace(free, begin + run)
        waited.append(begin - now)
    return waited


def test_sets_that_run_together_do_not_meet() -> None:
    work = Workload(GAPS, EXPONENTIAL, 3.0, 2.0, jobs=1500)
    wanted = [ParameterSet(i, "fitted", c, 1.0, i) for i, c in enumerate((1, 7, 3, 40, 3))]
    drawn = [draw(work, one) for one in wanted]
    together = waits(
        np.stack([gaps for gaps, _ in drawn], axis=1),
        np.stack([runs for _, runs in drawn], axis=1),
        np.array([one.workers for one in wanted]),
    )
    for i, one in enumerate(wanted):
        assert together[:, i] == pytest.approx(by_a_heap(*drawn[i], one.workers))


def test_the_same_seed_says_the_same_in_any_batch() -> None:
    work = Workload(GAPS, EXPONENTIAL, 3.0, 2.0, jobs=1000)
    sets = [ParameterSet(i, "fitted", c, 1.0, i % 3) for i, c in enumerate([4, 900, 5] * 4)]
    whole = sorted(simulate(work, sets))
    alone = [simulate(work, [one])[0] for one in sets]
    assert whole == alone
    other = simulate(Workload(GAPS, EXPONENTIAL, 3.0, 2.0, jobs=1000, seed=2), sets[:1])
    assert other[0].mean != whole[0].mean
