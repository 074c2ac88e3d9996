"""Soft limits raise in the job, wherever it runs; a cancelled job learns of it."""

import orjson
import pytest

from rqueue.errors import JobCancelled, JobFailed
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def failure(workers: WorkerFixture, task: str) -> dict[str, object]:
    job = workers.send(task)
    with pytest.raises(JobFailed):
        job.result(PATIENCE)
    cause = workers.redis.hget(workers.queue.keys.causes, job.id)
    return orjson.loads(cause)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_sync_job_gets_an_exception_and_may_tidy_up(workers: WorkerFixture, threads: int) -> None:
    workers.child(threads=threads)
    cause = failure(workers, "c.spin")
    assert (cause["kind"], cause["type"]) == ("time_limit", "rqueue.errors.SoftTimeLimit")
    assert "soft limit of 0.05 s" in str(cause["message"])
    assert workers.result("c.tidy") == "tidied up after 0.05"
    # the limit of one job is not that of the next
    assert workers.result("c.echo", 1) == 1


def test_an_async_job_is_cancelled(workers: WorkerFixture) -> None:
    workers.child()
    cause = failure(workers, "c.aspin")
    assert (cause["kind"], cause["type"]) == ("time_limit", "rqueue.errors.SoftTimeLimit")


def test_an_async_job_tidies_up_when_it_is_cancelled(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.agate", key, soft_time_limit=0.02, max_deliveries=1)
    assert (workers.hear(key), workers.hear(key)) == ("in", "cancelled")
    with pytest.raises(JobFailed, match="soft limit"):
        job.result(PATIENCE)


def test_the_limit_of_the_job_wins(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.tidy", soft_time_limit=0.02)
    assert job.result(PATIENCE) == "tidied up after 0.02"


def test_the_supervisor_can_read_the_hard_limit(workers: WorkerFixture) -> None:
    worker = workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.gate", key, time_limit=30)
    workers.hear(key)
    (running,) = worker.page.running()
    assert running.id == job.id
    assert running.deadline == pytest.approx(running.started + 30)
    workers.go(key)
    assert job.result(PATIENCE) == "through"
    eventually(lambda: not worker.page.running(), "an empty page")


@pytest.mark.parametrize("threads", [0, 2])
def test_a_cancelled_sync_job_learns_of_it_and_its_outcome_drops(
    workers: WorkerFixture, threads: int
) -> None:
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.watch", key)
    assert workers.hear(key) == "in"
    assert job.cancel()
    assert workers.hear(key) == "cancelled"
    with pytest.raises(JobCancelled):
        job.result(PATIENCE)
    assert workers.result("c.echo", 2) == 2
    assert "dropped" not in worker.log
    assert [row["outcome"] for row in workers.history() if row["id"] == job.id] == ["cancelled"]


def test_a_cancelled_async_job_stops(workers: WorkerFixture) -> None:
    worker = workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.agate", key)
    assert workers.hear(key) == "in"
    assert job.cancel()
    assert workers.hear(key) == "cancelled"
    eventually(lambda: not worker.page.running(), "its end")
    assert workers.result("c.echo", 2) == 2
    assert [row["outcome"] for row in workers.history() if row["id"] == job.id] == ["cancelled"]


def test_a_cancelled_job_that_had_not_begun_never_does(workers: WorkerFixture) -> None:
    workers.child(prefetch=4, async_slots=0)
    key = f"{workers.name}:k"
    # both in one subscription: the second waits behind the first until it is released
    gate, job = workers.send("c.gate", key), workers.send("c.push", key, "ran")
    workers.hear(key)
    assert job.cancel()
    workers.go(key)
    assert gate.result(PATIENCE) == "through"
    workers.settled()
    assert workers.redis.llen(key) == 0


def test_a_limit_leaves_nothing_behind_in_the_interpreter(workers: WorkerFixture) -> None:
    """CPython 3.11 keeps a flag for an exception that another thread is to raise, and where it
    stays set, each call of the process stops to look for one: a profiler never gets beyond."""
    workers.child(threads=1)
    assert workers.send("c.profile", 3).result(PATIENCE) == 3
    assert workers.send("c.tidy", soft_time_limit=0.02).result(PATIENCE)
    assert workers.send("c.profile", 3).result(PATIENCE) == 3
