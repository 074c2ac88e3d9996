import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

import pytest

from rqueue.errors import ConfigError, InvalidName
from rqueue.tasks.limits import Concurrency
from rqueue.tasks.option_checks import CHECKS
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.retry import RetryPolicy


def test_nothing_travels_by_default() -> None:
    assert NO_OPTIONS.to_opts() is None
    assert Options(priority=9, id="x", delay_ms=5, max_deliveries=2).to_opts() is None
    assert NO_OPTIONS.merged(priority=None, headers=None) is NO_OPTIONS


def test_what_travels_comes_back() -> None:
    options = Options(
        retry=RetryPolicy(delay=5, retry_on=[OSError]),
        time_limit=10,
        soft_time_limit=5.5,
        keep=60,
        headers={"trace": "1"},
        labels={"gpu": True, "version": 42},
    )
    opts = options.to_opts()
    assert opts == {
        "headers": {"trace": "1"},
        "labels": {"gpu": True, "version": 42},
        "retry": {"delay": 5, "retry_on": ["OSError"]},
        "time_limit": 10,
        "soft_time_limit": 5.5,
        "keep": 60,
    }
    assert NO_OPTIONS.for_run(opts) == options


def test_a_jobs_own_options_go_before_its_tasks() -> None:
    runs = Options(time_limit=10, keep=60, retry=RetryPolicy(delay=9))
    assert runs.for_run({}) is runs
    assert runs.for_run({"time_limit": 3.0}) == Options(
        time_limit=3.0, keep=60, retry=RetryPolicy(delay=9)
    )


def test_merging() -> None:
    options = Options(headers={"a": "1", "b": "2"}, delay_ms=5, priority=3)
    merged = options.merged(headers={"b": "3"}, at_ms=7 * 10**12, priority=None)
    assert merged == Options(headers={"a": "1", "b": "3"}, at_ms=7 * 10**12, priority=3)
    assert merged.merged(delay_ms=1).at_ms is None


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"priority": 10}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": 1.0}, "priority"),
        ({"at_ms": -1}, "at_ms"),
        ({"at_ms": 10**12.5}, "at_ms"),
        ({"at_ms": 10**12, "delay_ms": 1}, "delay_ms"),
        ({"max_deliveries": -1}, "max_deliveries"),
        ({"time_limit": 0}, "time_limit"),
        ({"keep": float("nan")}, "keep"),
        ({"soft_time_limit": "1"}, "soft_time_limit"),
        ({"time_limit": 5, "soft_time_limit": 5}, "soft_time_limit"),
        ({"headers": {"a": 1}}, "headers"),
        ({"headers": {1: "a"}}, "headers"),
        ({"labels": {"a": 1.5}}, "labels"),
    ],
)
def test_wrong_options_are_named(fields: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Options(**fields)
    assert caught.value.setting == setting


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"max_deliveries": -1},
            "max_deliveries: -1 is not a whole number from 1 to 1,000,000, or 0: as the queue "
            "says; a job without a limit: 0 in the queue's options (rqueue configure)",
        ),
        ({"max_crashes": -1}, "max_crashes: -1 is not a whole number from 1 to 1,000,000, or 0"),
        (
            {"labels": {"tenant": ["a"]}},
            "labels: the value of 'tenant', ['a'], is not text, a whole number, or True or False",
        ),
        ({"labels": {1: "a"}}, "labels: the name 1 is not text"),
        ({"headers": {"a": 1}}, "headers: the value of 'a', 1, is not text"),
        ({"headers": ["a"]}, "headers: ['a'] is not a dict whose names are text and whose values "),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Options(**fields)
    assert str(caught.value).startswith(said)


def test_a_wrong_id() -> None:
    with pytest.raises(InvalidName):
        Options(id="")


def test_the_same_options_under_another_id() -> None:
    options = Options(priority=9, ttl=5, headers={"a": "b"}, limit=[Concurrency(2, name="x")])
    assert options.under("j") == replace(options, id="j")
    assert options.id is None


def test_each_option_has_a_check() -> None:
    assert set(CHECKS) == {its.name for its in fields(Options)}


def test_an_instance_holds_what_is_not_as_by_default_and_nothing_else() -> None:
    """What packs jobs asks for it, in place of each option."""
    assert vars(Options()) == {}
    options = Options(key="a", group=None, hold=False, limit=[])
    assert vars(options) == {"key": "a", "limit": ()}
    assert (options.group, options.hold, options.priority) == (None, False, None)
    changed = replace(options, key=None, priority=7)
    assert vars(changed) == {"priority": 7, "limit": ()}
    assert vars(options.under("j")) == {"key": "a", "limit": (), "id": "j"}
    again = pickle.loads(pickle.dumps(options))
    assert again == options and vars(again) == vars(options)
    assert options == Options(key="a", limit=(), headers={}) != Options(key="b", limit=())


def test_options_are_taken_by_their_places_too() -> None:
    assert vars(Options("j", 3)) == {"id": "j", "priority": 3}
    with pytest.raises(TypeError):
        Options("j", id="k")
    with pytest.raises(TypeError):
        Options(*[None] * (len(fields(Options)) + 1))  # type: ignore[call-arg, arg-type]


def test_nobody_writes_to_options() -> None:
    with pytest.raises(FrozenInstanceError):
        Options().key = "a"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Options().headers["a"] = "1"  # type: ignore[index]
    assert Options().headers == {} == Options().labels


def test_a_due_time_is_said_as_a_task_says_it() -> None:
    assert Options(at=timedelta(minutes=2)) == Options(delay_ms=120_000)
    assert Options(at=2e9, priority=3) == Options(None, 3, at_ms=2 * 10**12)
    assert Options(at=datetime(2030, 1, 1, tzinfo=UTC)).at_ms == 1_893_456_000_000
    assert Options(at=None) == Options()
    assert replace(Options(at=2e9), priority=1) == Options(at_ms=2 * 10**12, priority=1)
    for wrong in (5, "soon", datetime(2030, 1, 1)):
        with pytest.raises(ConfigError, match="at: "):
            Options(at=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="one due time"):
        Options(at=2e9, delay_ms=5)
    assert pickle.loads(pickle.dumps(Options(at=2e9))) == Options(at=2e9)


def test_its_options_are_shown() -> None:
    assert {field.name for field in fields(Options)} | {"at"} == {*signature(Options).parameters}
