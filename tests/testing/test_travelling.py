"""How far `travel` goes: not further than so many jobs, and not on behalf of who is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rqueue as rq
from rqueue import Concurrency, ConfigError, ProducerLost, Rate, RetryPolicy, stream, task
from rqueue.errors import LifecycleError
from rqueue.model.parents import LOST_MS
from rqueue.testing import Harness, harness, in_memory
from rqueue.testing.due_times import has_consumers

Recorder = Any


def test_a_journey_on_which_too_many_jobs_are_due_says_so(
    queues: Harness, recorder: Recorder
) -> None:
    record = recorder(queue="q")
    began = queues.now
    record.enqueue_in(1)
    rq.queue("q").schedules.set("often", record, every="2s")
    with pytest.raises(LifecycleError) as error:
        queues.travel("2d", most=20)
    assert str(error.value) == (
        "20 jobs ran, 20 of them of task 'record', and there are more; the clock has moved"
        f" {(queues.now - began).total_seconds():.0f} of 172,800 s. travel(..., most=N) lets N of"
        " them run, run=False none"
    )
    assert timedelta(seconds=36) <= queues.now - began <= timedelta(seconds=42)
    there = queues.now
    assert queues.travel("20s", most=11).ran == 11
    assert queues.now == there + timedelta(seconds=20)
    with pytest.raises(ConfigError, match="most"):
        queues.travel("1m", most=0)


def test_as_many_as_may_run_are_not_too_many(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    for n in range(3):
        record.enqueue_in(60 * n)
    assert queues.travel("1h", most=3).ran == 3
    record.enqueue(1), record.enqueue(2)
    with pytest.raises(LifecycleError, match="and there are more; the clock has moved 0 of 60 s"):
        queues.travel("1m", most=1)


def test_jobs_that_enqueue_each_other_for_ever(
    queues: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "ROUNDS", 25)

    @task(queue="q")
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(LifecycleError, match="25 jobs ran and there are more: do they enqueue"):
        queues.drain()


def test_nobody_serves_a_queue_behind_a_journey(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    record.enqueue_in(5)
    queues.travel("1m")
    record.enqueue(1)
    queues.drain()
    assert not has_consumers(queues._server.db)
    record.enqueue(2)
    assert [str(one.state) for one in queues.enqueued()] == ["ready"]


def test_what_a_job_enqueues_on_the_way_is_not_handed_to_who_waits(
    queues: Harness, done: list[Any]
) -> None:
    @task(queue="b")
    def second() -> None:
        done.append("b")

    @task(queue="a")
    def first() -> None:
        assert second.enqueue().handed_to == ""
        assert [str(one.state) for one in queues.enqueued(second)] == ["ready"]
        done.append("a")

    second.enqueue_in(1)
    first.enqueue_in(10)
    assert queues.travel("1m").ran == 3
    assert done == ["b", "a", "b"]


def test_a_producer_that_does_not_come_back(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")

    def members() -> Iterator[Any]:
        yield record.s(1)
        raise OSError("no such table")

    with pytest.raises(OSError, match="no such table"):
        stream(members(), record.si(2)).enqueue(id="w")
    assert queues.travel(LOST_MS / 1000 - 1).ran == 0
    queues.travel(2)
    with pytest.raises(ProducerLost):
        rq.queue("q").job("w").result(0)


def test_a_test_begins_when_it_says(tasks: None, no_defaults: Any) -> None:
    at = datetime(2030, 1, 31, 8, tzinfo=UTC)
    for given in (at, at.timestamp(), "2030-01-31T09:00+01:00"):
        with in_memory(at=given) as queues:
            assert queues.now == at
            assert queues.travel("1h").ran == 0
            assert queues.now == at + timedelta(hours=1)
    for no_time, said in (
        (timedelta(hours=1), "not a duration"), ("1h", "not a duration"),
        (at.replace(tzinfo=None), "no time zone"), (7, "no Unix time"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said), in_memory(at=no_time):  # type: ignore[arg-type]
            raise AssertionError("it began")


@pytest.mark.parametrize("hour", range(24))
def test_a_nightly_job_runs_on_the_way_at_its_hour_alone(
    tasks: None, no_defaults: Any, hour: int
) -> None:
    ran: list[datetime] = []

    @task(queue="reports", cron="0 3 * * *", tz="Europe/Berlin")
    def nightly() -> None:
        ran.append(queues.now)

    with in_memory(at=datetime(2030, 7, 1, hour, 30, tzinfo=UTC)) as queues:
        queues.travel("2h")
        nights = [datetime(2030, 7, day, 1, tzinfo=UTC) for day in (1, 2)]
        assert ran == [
            night for night in nights if timedelta(0) <= queues.now - night <= timedelta(hours=2)
        ]


def test_all_that_is_due_at_one_time_runs(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    for n in range(200):
        record.options(priority=n % 3).enqueue_in(5, n)
    assert queues.travel("5s").ran == 200


@pytest.mark.parametrize("burst", [1, 3])
def test_a_rate_lets_its_jobs_run_on_the_way(
    queues: Harness, recorder: Recorder, burst: int
) -> None:
    record = recorder(queue="q", limit=Rate(2, per="1s", burst=burst))
    began = queues.now
    for n in range(6):
        record.enqueue(n)
    assert queues.drain().ran == burst
    assert queues.travel("10s").ran == 6 - burst
    assert queues.now - began == timedelta(seconds=10)


KINDS: dict[str, tuple[dict[str, Any], Callable[[int], dict[str, Any]]]] = {
    "plain": ({}, lambda n: {"priority": n % 3}),
    "groups": ({}, lambda n: {"group": str(n % 5)}),
    "sticky": ({"sticky": 8}, lambda n: {"group": str(n % 5)}),
    "shares": ({}, lambda n: {"share": str(n % 3)}),
    "ttl": ({}, lambda n: {"ttl": 3600}),
    "last value": ({}, lambda n: {"key": str(n)}),
    "bounded": ({"max_jobs": 1000}, lambda n: {}),
    "sorted": ({}, lambda n: {"sort_key": n % 4}),
    "one at a time": ({}, lambda n: {"limit": Concurrency(1)}),
    "a rate": ({}, lambda n: {"limit": Rate(10, per="1s", burst=2)}),
    "both": ({}, lambda n: {"limit": [Concurrency(2), Rate(10, per="1s", name="calls")]}),
    "exclusive": ({"live_consumers": 1}, lambda n: {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_jobs_of_a_queue_of_each_kind_run(
    queues: Harness, recorder: Recorder, kind: str
) -> None:
    configured, options = KINDS[kind]
    record = recorder(queue="q", retry=RetryPolicy(delay=1, jitter=0))
    if configured:
        rq.queue("q").configure(**configured)
    for n in range(40):
        later = {"at": timedelta(seconds=5 * (n % 3))} if n % 3 else {}
        record.options(**options(n), **later).enqueue(n)
    ran = queues.drain().ran + queues.travel("1m").ran
    assert (ran, queues.enqueued()) == (40, [])
