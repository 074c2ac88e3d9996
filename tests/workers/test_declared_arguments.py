"""Schedules of one task with arguments: declared by its code, gone with it."""

from __future__ import annotations

from typing import Any

import pytest

from rqueue import Schedule, queue, task
from rqueue.errors import BadArguments, ConfigError, InvalidName
from rqueue.model.schedule import Timing
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Debounce
from rqueue.testing import in_memory
from rqueue_workers.worker.declaring import declarations_of

ran: list[tuple[str, int]] = []

FLAG = False


@pytest.fixture
def here() -> Registry:
    return Registry()


def totals(region: str, days: int = 1) -> None:
    ran.append((region, days))


def test_each_ticks_with_its_arguments() -> None:
    ran.clear()
    name = "declared.totals"
    with in_memory() as harness:
        task(
            name=name,
            queue="declared",
            every="10m",
            schedules=[
                Schedule("eu", args=["eu"], every="1m"),
                Schedule("us", args=["us"], kwargs={"days": 7}, every="90s"),
                Schedule("never", args=["x"], cron="@daily" if FLAG else None, jitter="6d"),
            ],
        )(lambda region="all", days=1: totals(region, days))
        harness.travel("150s")
        harness.drain()
        assert sorted(ran) == [("eu", 1), ("eu", 1), ("us", 7)]
        names = {info.name for info in queue("declared").schedules.list()}
        assert names == {name, "eu", "us"}


def test_without_a_time_a_task_is_as_any_other(here: Registry) -> None:
    made = task(name="a", cron=None, every=None, jitter="6d", tz="Europe/Berlin", registry=here)
    assert made(totals).schedules == ()


def test_what_is_declared(here: Registry) -> None:
    made = task(
        name="a", queue="q", schedules=[Schedule("s", args=["eu"], cron="@daily")], registry=here
    )(totals)
    (one,) = declarations_of(made)
    assert (one.name, one.task, one.queue, one.timing) == ("s", "a", "q", Timing.of(cron="@daily"))
    assert one.job == '["a",["eu"]]'


@pytest.mark.parametrize(
    ("schedules", "error", "said"),
    [
        ([Schedule("s", args=[1, 2, 3], every=60)], BadArguments, "takes"),
        ([Schedule(every=60)], BadArguments, "region"),
        ([Schedule("s", args=["a"], every=60)] * 2, ConfigError, "two are named 's'"),
        (["s"], ConfigError, r"schedules: .* list of Schedule"),
        ("s", ConfigError, "a list of Schedule"),
        (Schedule("s", args=["a"], every=60), ConfigError, "a list of Schedule"),
    ],
)
def test_what_is_wrong_is_said_where_it_is_defined(
    here: Registry, schedules: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        task(name="a", schedules=schedules, registry=here)(totals)


def test_a_schedule_alone_is_checked() -> None:
    for wrong in ({"cron": "61 * * * *"}, {"cron": "@daily", "every": 60}, {"args": "eu"}):
        with pytest.raises(ConfigError):
            Schedule("s", **wrong)
    with pytest.raises(InvalidName):
        Schedule("")


def test_no_tick_takes_the_place_of_a_call(here: Registry) -> None:
    with pytest.raises(ConfigError, match="the ticks say when"):
        task(
            name="a",
            unique=Debounce("1m"),
            schedules=[Schedule("s", args=["a"], every=60)],
            registry=here,
        )(totals)
