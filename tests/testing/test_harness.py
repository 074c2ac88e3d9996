"""What the fixture `rqueue` does: whatever the program enqueues is in memory, asserted, and run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any

import pytest

import rqueue as rq
from rqueue import App, Depends, Middleware, RetryPolicy, Unique, chain, chord, current_job, task
from rqueue.client import default_queues
from rqueue.model import signing
from rqueue.testing import Harness, in_memory

Recorder = Callable[..., Any]
NOWHERE = "redis://127.0.0.1:1/0"


def test_what_waits_is_asserted_and_runs(
    queues: Harness, recorder: Recorder, done: list[Any]
) -> None:
    record = recorder(queue="mail")
    job = record.enqueue(1, (2, 3))
    found = queues.assert_enqueued(record, args=[1, (2, 3)], queue="mail", count=1)
    assert (found.id, found.args) == (job.id, [1, [2, 3]])
    assert [one.id for one in queues.enqueued(queue="mail")] == [job.id]
    assert queues.enqueued("other") == queues.enqueued(queue="other") == []
    drained = queues.drain()
    assert (drained.ran, drained.jobs[0].outcome, done) == (1, "done", [(1, [2, 3])])
    assert job.result(timeout=1) == [1, [2, 3]]
    queues.assert_not_enqueued(record)
    assert queues.drain().ran == 0
    assert [ran.id for ran in queues.ran] == [job.id]


def test_what_waits_for_others_is_enqueued_too(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="mail")
    chain(record.si("a"), record.si("b")).enqueue()
    assert [str(one.state) for one in queues.enqueued(record)] == ["deferred", "ready"]
    queues.assert_enqueued(record, args=["b"])
    assert (queues.drain().ran, queues.enqueued()) == (2, [])


def test_a_failed_assertion_says_what_there_is(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="mail")
    with pytest.raises(AssertionError, match="nothing is enqueued"):
        queues.assert_enqueued(record)
    record.enqueue("a")
    with pytest.raises(AssertionError, match=r"record\('b'\) is not enqueued.*\n.*record\('a'\)"):
        queues.assert_enqueued(record, args=["b"])
    with pytest.raises(AssertionError, match="in queue 'x' is not"):
        queues.assert_enqueued(record, queue="x")
    with pytest.raises(AssertionError, match="is enqueued: record"):
        queues.assert_not_enqueued(record, args=["a"])
    with pytest.raises(AssertionError, match="1 times, not 2"):
        queues.assert_enqueued(record, count=2)
    with pytest.raises(rq.ConfigError):
        queues.assert_enqueued(record, at=queues.now, in_="1h")


def test_arguments_are_the_same_by_place_and_by_name(queues: Harness) -> None:
    @task(queue="q")
    def call(a: int, b: int = 0, *, c: int = 0) -> None: ...

    call.enqueue(1, b=2, c=3)
    queues.assert_enqueued(call, args=[1, 2], kwargs={"c": 3})
    queues.assert_enqueued(call, args=[], kwargs={"a": 1, "b": 2, "c": 3})
    queues.assert_not_enqueued(call, args=[1], kwargs={})
    queues.assert_enqueued(call, kwargs={"b": 2, "c": 3})


def test_times_are_told_by_the_clock_of_the_test(
    queues: Harness, recorder: Recorder, done: list[Any]
) -> None:
    record = recorder(queue="q")
    record.enqueue_in(7200, "in")
    record.enqueue_at(queues.now + timedelta(days=1), "at")
    queues.assert_enqueued(record, args=["in"], in_="2h")
    queues.assert_enqueued(record, args=["in"], at=queues.now + timedelta(hours=2))
    queues.assert_enqueued(record, args=["at"], in_=timedelta(days=1))
    queues.assert_not_enqueued(record, in_="3h")
    assert queues.drain().ran == 0
    assert queues.travel(7199).ran == 0
    assert queues.travel(1).ran == 1
    assert queues.travel(queues.now + timedelta(days=2)).ran == 1
    assert done == [("in",), ("at",)]


def test_time_stands_still_until_it_is_moved(queues: Harness) -> None:
    before = queues.now
    queues.travel("90s")
    assert queues.now - before == timedelta(seconds=90)
    queues.travel(datetime(2100, 1, 1, tzinfo=UTC))
    assert queues.now == datetime(2100, 1, 1, tzinfo=UTC)


def test_each_attempt_comes_after_its_backoff(queues: Harness, done: list[Any]) -> None:
    @task(queue="q", retry=RetryPolicy(delay=60, jitter=0, max_deliveries=3))
    def fails() -> None:
        done.append(queues.now)
        raise FileNotFoundError("gone")

    job = fails.enqueue()
    began = queues.now
    with pytest.raises(FileNotFoundError, match="gone") as raised:
        queues.drain()
    assert "attempt 1, outcome retry" in raised.value.__notes__[0]
    queues.assert_enqueued(fails, in_=60)
    drained = queues.travel("1h", raises=False)
    assert [(ran.attempt, ran.outcome) for ran in drained.failures] == [(2, "retry"), (3, "reject")]
    assert [(at - began).total_seconds() for at in done] == [0, 60, 180]
    assert job.state() == "dead"
    with pytest.raises(rq.JobFailed):
        job.result(timeout=1)


def test_who_says_what_is_to_become_of_it_has_not_failed(queues: Harness) -> None:
    @task(queue="q")
    def says(what: str) -> None:
        raise {"retry": rq.Retry(after=5), "snooze": rq.Snooze(5), "no": rq.Reject("no")}[what]

    for what in ("retry", "snooze", "no"):
        says.enqueue(what)
    assert [ran.outcome for ran in queues.drain().jobs] == ["retry", "snooze", "reject"]


def test_what_has_lived_its_time_ends_on_the_way(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    job = record.options(ttl=60).enqueue_in(30, "x")
    late = record.options(ttl=60).enqueue("y")
    queues.travel("2m", run=False)
    assert queues.drain().ran == 0
    assert (job.state(), late.state()) == ("expired", "expired")


def test_without_a_worker_nothing_runs_on_the_way(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    record.enqueue_in(30, "x")
    assert queues.travel("1h", run=False).ran == 0
    assert queues.drain().ran == 1


def test_periodic_jobs_of_the_code_run_each_at_its_time(queues: Harness, done: list[Any]) -> None:
    @task(queue="cron", cron="0 3 * * *")
    def nightly() -> None:
        done.append((queues.now.hour, queues.now.minute, rq.current_job().tick is not None))  # type: ignore[union-attr]

    assert queues.drain().ran == 0
    assert queues.travel("3d").ran == 3
    assert done == [(3, 0, True)] * 3
    assert queues.travel("1d").ran == 1


def test_periodic_jobs_that_are_set_run_too(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    rq.queue("q").schedules.set("often", record, every="10m")
    assert queues.travel("1h").ran == 6


def test_a_failing_periodic_job_stops_the_journey_where_it_is(queues: Harness) -> None:
    @task(queue="cron", every="1h", retry=RetryPolicy(max_deliveries=1))
    def fails() -> None:
        raise ValueError("now")

    began = queues.now
    with pytest.raises(ValueError, match="now"):
        queues.travel("1d")
    assert timedelta(0) < queues.now - began <= timedelta(hours=1)


def test_what_jobs_enqueue_runs_in_the_same_drain(queues: Harness, done: list[Any]) -> None:
    @task(queue="b")
    def second(n: int) -> None:
        done.append(n)
        job = current_job()
        assert job is not None
        with job.transaction() as tx:
            if n < 3:
                tx.enqueue(second, n + 1)

    @task(queue="a")
    def first() -> None:
        second.enqueue(1)

    first.enqueue()
    assert queues.drain().ran == 4
    assert done == [1, 2, 3]


def test_async_jobs_run_too(queues: Harness, done: list[Any]) -> None:
    @task(queue="q")
    async def waits(n: int) -> int:
        await asyncio.sleep(0)
        done.append((n, id(asyncio.get_running_loop())))
        return n

    job = waits.enqueue(1)
    queues.drain()
    assert job.result(timeout=1) == 1

    async def in_a_loop() -> None:
        handle = await waits.aenqueue(2)
        await queues.adrain()
        assert await handle.result(timeout=1) == 2
        assert done[-1] == (2, id(asyncio.get_running_loop()))
        await waits.aenqueue_in(60, 3)
        assert (await queues.atravel("1m")).ran == 1
        assert await queues.arun_job(waits, 4) == 4
        queues.drain()  # in a loop, too: on another one
        await waits.aenqueue(5)
        assert queues.drain().ran == 1

    asyncio.run(in_a_loop())
    assert [n for n, _ in done] == [1, 2, 3, 4, 5]


def test_jobs_report_how_far_they_are(queues: Harness, done: list[Any]) -> None:
    @task(queue="q")
    def render() -> None:
        job = current_job()
        assert job is not None
        job.progress(1, 2, "half")
        done.extend(rq.queue("q").job(job.id).watch(timeout=0))

    @task(queue="q")
    async def arender() -> None:
        render.function()

    for one in (render, arender):
        handle = one.enqueue()
        queues.drain()
        (update,) = handle.watch()
        assert (update.state, update.progress) == ("done", None)
    assert [(found.state, str(found.progress)) for found in done] == [
        ("held", "1/2 (50%) half")
    ] * 2


def test_lines_that_jobs_log_are_seen(queues: Harness, done: list[Any]) -> None:
    @task(queue="q")
    def render() -> None:
        job = current_job()
        assert job is not None
        job.log("page %d", 1)
        done.extend(rq.queue("q").job(job.id).watch(timeout=0))
        job.log("page %d", 2)

    @task(queue="q")
    async def arender() -> None:
        render.function()

    for one in (render, arender):
        handle = one.enqueue()
        queues.drain()
        (end,) = handle.watch()
        assert [(line.number, line.text) for line in end.lines] == [(1, "page 1"), (2, "page 2")]
    assert [[line.text for line in found.lines] for found in done] == [["page 1"]] * 2


def test_workflows_go_through_queues(queues: Harness, recorder: Recorder, done: list[Any]) -> None:
    one, other = recorder(queue="one"), recorder(queue="other")
    last = chord([one.si("a"), chain(other.si("b"), one.si("c"))], other.si("d")).enqueue()
    assert queues.drain().ran == 4
    assert last.result(timeout=1) == ["d"]
    assert sorted(done[:3]) == [("a",), ("b",), ("c",)]


def test_all_that_is_around_a_job_is_there(queues: Harness, done: list[Any]) -> None:
    user: ContextVar[str] = ContextVar("user", default="")

    class Around(Middleware):
        def around_job(self, job: rq.JobContext, call: Callable[[], Any]) -> Any:
            done.append(f"before {job.attempts}")
            try:
                return call()
            finally:
                done.append("after")

        def on_dead(self, job: rq.JobContext, error: BaseException) -> None:
            done.append(f"dead {error}")

        def startup(self, worker: rq.WorkerInfo) -> None:
            done.append("startup")

        async def shutdown(self, worker: rq.WorkerInfo) -> None:
            done.append("shutdown")

    def connection() -> Iterator[str]:
        yield "connection"
        done.append("closed")

    with App(middleware=[Around()], context=[user]):

        @task(queue="q", retry=RetryPolicy(max_deliveries=1))
        def works(at: datetime, db: str = Depends(connection)) -> str:
            done.append((at.year, db, user.get()))
            if at.year == 1999:
                raise ValueError("past")
            return db

        user.set("ada")
        works.enqueue(datetime(2030, 1, 1, tzinfo=UTC))
        user.set("")
        assert queues.drain().jobs[0].result == "connection"
        assert done == ["startup", "before 0", (2030, "connection", "ada"), "closed", "after"]
        done.clear()
        assert queues.run_attempt(3, works, datetime(2031, 1, 1, tzinfo=UTC)) == "connection"
        assert done == ["before 2", (2031, "connection", ""), "closed", "after"]
        done.clear()
        works.enqueue(datetime(1999, 1, 1, tzinfo=UTC))
        queues.drain(raises=False)
        assert done[-1] == "dead past"
        with pytest.raises(ValueError, match="past"):
            queues.run_job(works, datetime(1999, 1, 1, tzinfo=UTC))
        queues.close()
    assert done[-1] == "shutdown"


def test_a_job_that_no_queue_has_goes_through_its_steps_and_loops(queues: Harness) -> None:
    @task(queue="q")
    def works(number: int) -> list[int]:
        job = rq.current_job()
        assert job is not None
        paid = job.step("pay", lambda: number + 1)
        return [paid, *job.iterate(lambda position: ((row, row) for row in (7, 8)))]

    @task(queue="q")
    async def aworks(number: int) -> int:
        async def pay() -> int:
            return number + 1

        job = rq.current_job()
        assert job is not None
        return await job.astep("pay", pay)

    assert queues.run_job(works, 1) == queues.run_attempt(2, works, 1) == [2, 7, 8]
    assert queues.run_job(aworks, 1) == 2


def test_jobs_of_unknown_tasks_and_what_cannot_be_read_fail(queues: Harness) -> None:
    rq.queue("q").send("nobody.knows")
    with pytest.raises(rq.RQueueError, match=r"nobody\.knows"):
        queues.drain()
    queues.assert_enqueued("nobody.knows")


def test_the_queues_own_rules_hold(queues: Harness, recorder: Recorder, done: list[Any]) -> None:
    record = recorder(queue="q")
    for _ in (1, 2):
        record.options(unique=Unique(), group="g").enqueue("same")
    assert len(queues.enqueued()) == 1
    record.options(priority=9).enqueue("first")
    assert queues.drain().ran == 2
    assert done == [("first",), ("same",)]
    bounded = rq.queue("small")
    bounded.configure(max_jobs=1)
    bounded.send("t")
    with pytest.raises(rq.QueueFull):
        bounded.send("t")


def test_signed_jobs_run_however_far_the_clock_is_moved(
    tasks: None, no_defaults: Any, recorder: Recorder
) -> None:
    record = recorder(queue="q")
    default_queues.configure(NOWHERE, signing_keys={"k": "0123456789abcdef"})
    with in_memory() as queues:
        record.enqueue_in(86_400 * 30, "x")
        assert queues.travel("31d").ran == 1
        record.enqueue_in(60, "y")
        assert [ran.outcome for ran in queues.travel("1h").jobs] == ["done"]
    with in_memory(at="2020-02-29T12:00Z") as queues:
        record.enqueue("z")
        assert [ran.outcome for ran in queues.drain().jobs] == ["done"]
    assert signing.clock_ns is time_ns


def test_a_result_that_nobody_makes_is_no_wait(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="q")
    job = record.enqueue(1)
    with pytest.raises(rq.RQueueError, match=r"call drain\(\)"):
        job.result(timeout=60)

    async def in_a_loop() -> None:
        handle = await record.aenqueue(2)
        with pytest.raises(rq.RQueueError, match=r"call drain\(\)"):
            await handle.result(timeout=60)

    asyncio.run(in_a_loop())


def test_harnesses_do_not_nest_and_jobs_do_not_drain(queues: Harness) -> None:
    with pytest.raises(rq.RQueueError, match="in memory already"), in_memory():
        pass

    @task(queue="q", retry=RetryPolicy(max_deliveries=1))
    def drains() -> None:
        queues.drain()

    drains.enqueue()
    with pytest.raises(rq.RQueueError, match="a job cannot"):
        queues.drain()
