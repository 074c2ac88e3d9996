"""Soft limits raise in the job, wherever it runs; a cancelled job is told."""

import orjson
import pytest

from rqueue.errors import JobCancelled, JobFailed
from tests.workers.children import Bench, eventually


def failure(bench: Bench, task: str) -> dict[str, object]:
    job = bench.send(task)
    with pytest.raises(JobFailed):
        job.result(10)
    cause = bench.redis.hget(bench.queue.keys.causes, job.id)
    return orjson.loads(cause)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_sync_job_gets_an_exception_and_may_tidy_up(bench: Bench, threads: int) -> None:
    bench.child(threads=threads)
    cause = failure(bench, "c.spin")
    assert (cause["kind"], cause["type"]) == ("time_limit", "rqueue.errors.SoftTimeLimit")
    assert "soft limit of 0.05 s" in str(cause["message"])
    assert bench.result("c.tidy") == "tidied up after 0.05"
    # the limit of one job is not that of the next
    assert bench.result("c.echo", 1) == 1


def test_an_async_job_is_cancelled(bench: Bench) -> None:
    bench.child()
    cause = failure(bench, "c.aspin")
    assert (cause["kind"], cause["type"]) == ("time_limit", "rqueue.errors.SoftTimeLimit")


def test_the_limit_of_the_job_wins(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.tidy", soft_limit=0.02)
    assert job.result(10) == "tidied up after 0.02"


def test_the_supervisor_can_read_the_hard_limit(bench: Bench) -> None:
    worker = bench.child()
    key = f"{bench.name}:k"
    job = bench.send("c.gate", key, limit=30)
    bench.hear(key)
    (running,) = worker.page.running()
    assert running.id == job.id
    assert running.deadline == pytest.approx(running.started + 30)
    bench.go(key)
    assert job.result(10) == "through"
    eventually(lambda: not worker.page.running(), "an empty page")


@pytest.mark.parametrize("threads", [0, 2])
def test_a_cancelled_sync_job_is_told_and_its_outcome_drops(bench: Bench, threads: int) -> None:
    worker = bench.child(threads=threads)
    key = f"{bench.name}:k"
    job = bench.send("c.watch", key)
    assert bench.hear(key) == "in"
    assert job.cancel()
    assert bench.hear(key) == "cancelled"
    with pytest.raises(JobCancelled):
        job.result(10)
    assert bench.result("c.echo", 2) == 2
    assert "dropped" not in worker.log
    assert [row["outcome"] for row in bench.history() if row["id"] == job.id] == ["cancelled"]


def test_a_cancelled_async_job_stops(bench: Bench) -> None:
    worker = bench.child()
    key = f"{bench.name}:k"
    job = bench.send("c.agate", key)
    assert bench.hear(key) == "in"
    assert job.cancel()
    assert bench.hear(key) == "cancelled"
    eventually(lambda: not worker.page.running(), "its end")
    assert bench.result("c.echo", 2) == 2
    assert [row["outcome"] for row in bench.history() if row["id"] == job.id] == ["cancelled"]


def test_a_cancelled_job_that_had_not_begun_never_does(bench: Bench) -> None:
    bench.child(prefetch=4, async_slots=0)
    key = f"{bench.name}:k"
    # both in one hand: the second waits behind the first until it is given back
    gate, job = bench.send("c.gate", key), bench.send("c.push", key, "ran")
    bench.hear(key)
    assert job.cancel()
    bench.go(key)
    assert gate.result(10) == "through"
    bench.settled()
    assert bench.redis.llen(key) == 0
