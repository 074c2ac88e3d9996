import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import ConfigError
from rqueue.tasks.retry import DEFAULT_RETRY, NO_RETRY, RetryPolicy, error_name


class Odd(OSError):
    pass


POLICIES = st.builds(
    RetryPolicy,
    max_deliveries=st.integers(0, 50),
    backoff=st.sampled_from(["exponential", "linear", "fixed"]),
    delay=st.floats(0, 1e6),
    multiplier=st.floats(1, 100),
    max_delay=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
    retry_on=st.lists(st.sampled_from([OSError, "app.Bad", ValueError]), max_size=2),
    give_up_on=st.lists(st.sampled_from([KeyError, "app.Worse"]), max_size=2),
    retry_at=st.sampled_from(["head", "tail"]),
)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("exponential", [1.5, 4.5, 13.5, 20.0, 20.0]),
        ("linear", [1.5, 3.0, 4.5, 6.0, 7.5]),
        ("fixed", [1.5, 1.5, 1.5, 1.5, 1.5]),
    ],
)
def test_backoffs(backoff: Any, delays: list[float]) -> None:
    policy = RetryPolicy(backoff=backoff, delay=1.5, multiplier=3, max_delay=20, jitter=0)
    assert [policy.delay_after(attempt) for attempt in range(1, 6)] == delays


def test_jitter_spreads_evenly_over_its_full_range() -> None:
    policy = RetryPolicy(delay=8, jitter=0.25)
    assert policy.delay_after(1, lambda: 0.0) == 6
    assert policy.delay_after(1, lambda: 0.5) == 8
    assert policy.delay_after(1, lambda: 1.0) == 10
    wide = RetryPolicy(delay=8, jitter=1)
    assert wide.delay_after(1, lambda: 0.0) == 0
    assert wide.delay_after(1, lambda: 1.0) == 16


def test_jitter_still_spreads_at_the_longest_delay() -> None:
    policy = RetryPolicy(delay=1, max_delay=100, jitter=0.25)
    assert policy.delay_after(50, lambda: 0.0) == pytest.approx(60)
    assert policy.delay_after(50, lambda: 1.0) == pytest.approx(100)


@given(POLICIES, st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_negative_nor_too_long(
    policy: RetryPolicy, attempt: int, random: float
) -> None:
    delay = policy.delay_after(attempt, lambda: random)
    assert 0 <= delay <= policy.max_delay * (1 + 1e-9)


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match="count from 1"):
        DEFAULT_RETRY.delay_after(0)


def test_rules() -> None:
    assert DEFAULT_RETRY.retries(ValueError())
    only = RetryPolicy(retry_on=[OSError, "app.errors.Busy"])
    assert only.retries(Odd())
    assert only.retries(ConnectionResetError())
    assert not only.retries(ValueError())
    never = RetryPolicy(give_up_on=[Odd])
    assert never.retries(OSError())
    assert not never.retries(Odd())
    both = RetryPolicy(retry_on=(OSError,), give_up_on=(error_name(Odd),))
    assert both.retries(OSError())
    assert not both.retries(Odd())
    assert RetryPolicy(retry_on="builtins.ValueError").retries(UnicodeError())


@given(POLICIES)
def test_policies_survive_the_envelope(policy: RetryPolicy) -> None:
    again = RetryPolicy.from_dict(json.loads(json.dumps(policy.to_dict())))
    assert again == policy
    assert hash(again) == hash(policy)


def test_only_what_differs_travels() -> None:
    assert DEFAULT_RETRY.to_dict() == {}
    assert NO_RETRY.to_dict() == {"max_deliveries": 1}
    assert RetryPolicy(retry_on=[Odd]).to_dict() == {"retry_on": [error_name(Odd)]}


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"max_deliveries": -1}, "max_deliveries"),
        ({"max_deliveries": 1.5}, "max_deliveries"),
        ({"max_deliveries": True}, "max_deliveries"),
        ({"backoff": "random"}, "backoff"),
        ({"delay": -1}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"delay": "1s"}, "delay"),
        ({"delay": 10**400}, "delay"),
        ({"multiplier": 0.5}, "multiplier"),
        ({"max_delay": float("inf")}, "max_delay"),
        ({"jitter": 1.1}, "jitter"),
        ({"retry_on": [1]}, "retry_on"),
        ({"retry_on": [int]}, "retry_on"),
        ({"give_up_on": 7}, "give_up_on"),
        ({"retry_at": "middle"}, "retry_at"),
        ({"jiter": 1}, "retry"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RetryPolicy.from_dict(fields)
    assert caught.value.setting == setting
