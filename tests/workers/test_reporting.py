"""What jobs report of themselves while they run: through retries, kills and cancels. Real
processes."""

import os
import signal
from collections.abc import Iterator

import pytest

from rqueue.inspector import Inspector
from rqueue.model.cancellation import Cancellation
from rqueue.model.progress import JobUpdate
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture
from tests.workers.pools import eventually

APPS = ("tests.workers.child_app", "tests.workers.reporting_app")


def until(updates: Iterator[JobUpdate], said: str) -> str:
    """Watch on until a job says so; its state and what it says."""
    for update in updates:
        found = f"{update.state} {update.progress}"
        if said in found:
            return found
    raise AssertionError(f"it never said {said}")


def kept(workers: WorkerFixture) -> list[bytes]:
    return [*workers.redis.scan_iter(f"{workers.queue.keys.base}progress:*")]


@pytest.mark.parametrize(("task", "threads"), [("c.pages", 0), ("c.pages", 2), ("c.apages", 0)])
def test_a_watcher_sees_how_far_a_job_is(workers: WorkerFixture, task: str, threads: int) -> None:
    workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(task, key)
    updates = job.watch(PATIENCE)
    assert until(updates, "first") == "held 1/3 (33%) first"
    with Inspector(workers.url) as inspector:
        assert str(inspector.job(job.id).job.progress) == "1/3 (33%) first"
    workers.go(key)
    assert until(updates, "second") == "held 2/3 (67%) second"
    workers.go(key)
    assert until(updates, "done").startswith("done ")
    assert list(updates) == []
    eventually(lambda: not kept(workers))


def test_a_loop_that_reports_costs_some_calls_a_second(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    key = f"{workers.name}:k"
    before = workers.redis.info("commandstats")["cmdstat_evalsha"]["calls"]
    count = 100_000
    job = workers.send("c.many_reports", key, count)
    last = until(job.watch(PATIENCE), f"{count:g}/{count:g}")
    assert last.startswith("held")
    assert workers.redis.info("commandstats")["cmdstat_evalsha"]["calls"] - before < 100
    workers.go(key)
    job.result(PATIENCE)


def test_a_dead_letter_says_how_far_it_came(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    job = workers.send("c.comes_so_far")
    assert until(job.watch(PATIENCE), "dead") == "dead 30/100 (30%) rendering"
    with Inspector(workers.url) as inspector:
        assert str(inspector.job(job.id).job.progress) == "30/100 (30%) rendering"


def test_what_is_said_of_an_attempt_that_is_over_is_nothing(workers: WorkerFixture) -> None:
    worker = workers.child(app=APPS)
    for number in range(3):
        assert workers.result("c.reports_late") == number
    eventually(lambda: not kept(workers))
    assert worker.leave() == 0
    assert not kept(workers)
    assert "not sent" not in worker.log


def test_a_process_that_a_job_forked_does_not_report(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    assert workers.result("c.forks_and_reports") == "LifecycleError"


@pytest.mark.parametrize("threads", [0, 2])
def test_a_job_that_is_cancelled_leaves_nothing(workers: WorkerFixture, threads: int) -> None:
    workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.held_and_reported", key)
    updates = job.watch(PATIENCE)
    assert until(updates, "delivery") == "held 1 delivery"
    assert job.cancel(running=threads == 0, timeout=PATIENCE if threads == 0 else 0)
    assert until(updates, "cancelled") == "cancelled 1 delivery"
    workers.go(key)
    eventually(lambda: not kept(workers))


def test_the_next_attempt_reports_after_a_kill(workers: WorkerFixture) -> None:
    worker = workers.child(app=APPS)
    key = f"{workers.name}:k"
    job = workers.send("c.held_and_reported", key)
    updates = job.watch(PATIENCE)
    assert until(updates, "delivery") == "held 1 delivery"
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert 0 < workers.redis.pttl(workers.queue.keys.progress(job.id)) <= 86_400_000
    cause = b'{"kind":"crash","type":"SIGKILL"}'
    call = commands.reclaim(workers.queue.keys, f"{worker.base}.0", cause, [])
    while execute(workers.redis, call).held:
        pass
    workers.child(app=APPS)
    assert until(updates, "held 2") == "held 2 delivery"
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert until(updates, "cancelled")


@pytest.mark.parametrize("threads", [0, 2])
def test_lines_are_seen_as_they_come(workers: WorkerFixture, threads: int) -> None:
    workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.logs", key)
    heard: list[tuple[int, str]] = []
    for update in job.watch(PATIENCE):
        heard += [(line.level, line.text) for line in update.lines]
        if len(heard) == 2:
            workers.go(key)
    assert heard == [(20, "page 1 of two"), (30, "careful"), (40, "last")]
    assert str(job.state()) == "done"
    with Inspector(workers.url) as inspector:
        assert [line.number for line in inspector.log(job.id)] == [1, 2, 3]
    eventually(lambda: workers.redis.pttl(workers.queue.keys.log(job.id)) <= 600_000)


def test_a_job_that_ends_at_once_shows_its_lines(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    for _ in range(5):
        job = workers.send("c.ends_at_once")
        assert job.result(PATIENCE) == 7
        (update,) = job.watch()  # it is there before the end is
        assert [line.text for line in update.lines] == ["only this"]


def test_of_too_many_lines_the_last_are_kept(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    job = workers.send("c.logs_much")
    list(job.watch(PATIENCE))
    with Inspector(workers.url) as inspector:
        lines = inspector.log(job.id)
    assert len(lines) == 1000
    assert [line.text for line in lines[-500:]] == [str(n) for n in range(19_500, 20_000)]
