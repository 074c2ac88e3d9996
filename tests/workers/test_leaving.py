"""Drain, stop, recycling: nothing is lost, and what was not begun goes back uncounted."""

import threading
from typing import Any

import psutil
import pytest

from rqueue.model.job import JobState
from rqueue_workers.status_page import DRAIN, DRAINING, LEAVING, STOP
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.shutdown import Stop
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def test_an_idle_worker_leaves_at_once(workers: WorkerFixture) -> None:
    child = workers.child()
    assert child.leave() == 0
    counts = workers.counts()
    assert counts.interested + counts.notified + counts.not_interested == 0


def test_running_jobs_are_finished_and_unstarted_ones_released(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    child = workers.child(threads=1, prefetch=5)
    jobs = [workers.send("c.gate", key, i) for i in range(4)]
    assert workers.hear(key) == "0"
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    eventually(lambda: workers.counts().ready == 3, "the give-back")
    workers.go(key)
    assert child.wait() == 0
    assert jobs[0].result(PATIENCE) == "through"
    assert workers.counts().ready == 3


def test_a_long_job_in_the_main_thread_may_finish(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    child = workers.child()
    job = workers.send("c.gate", key)
    workers.hear(key)
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    late = workers.send("c.echo", 1)
    workers.go(key)
    assert child.wait() == 0
    assert job.result(PATIENCE) == "through"
    assert workers.counts().ready == 1
    assert late.id


def _overdue(workers: WorkerFixture, task: str, **options: object) -> None:
    key = f"{workers.name}:k"
    child = workers.child(drain=0.1, **options)
    job = workers.send(task, key)
    workers.hear(key)
    child.ask_to_leave()
    assert child.wait() == 3
    counts = workers.counts()
    assert (counts.ready, counts.held) == (1, 0)
    again = workers.child()
    workers.hear(key)
    workers.go(key)
    assert job.result(PATIENCE) == "through"
    (row,) = [row for row in workers.history() if row["outcome"] == "ack"]
    assert (row["attempts"], row["deliveries"]) == (0, 1)
    assert again.leave() == 0


def test_past_the_deadline_the_job_in_the_main_thread_goes_back(workers: WorkerFixture) -> None:
    _overdue(workers, "c.gate")


def test_past_the_deadline_jobs_in_threads_go_back(workers: WorkerFixture) -> None:
    _overdue(workers, "c.gate", threads=2)


def test_past_the_deadline_jobs_on_the_loop_go_back(workers: WorkerFixture) -> None:
    _overdue(workers, "c.agate")


def test_a_job_learns_that_the_worker_is_about_to_stop(workers: WorkerFixture) -> None:
    for threads in (0, 1):
        key = f"{workers.name}:k{threads}"
        child = workers.child(threads=threads)
        workers.send("c.watch", key)
        assert workers.hear(key) == "in"
        child.ask_to_leave()
        assert workers.hear(key) == "stopping"
        assert child.wait() == 0


def test_stop_waits_for_nothing(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    child = workers.child(drain=60)
    workers.send("c.gate", key)
    workers.hear(key)
    child.page.ask(DRAIN)
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    child.page.ask(STOP)
    child.ask_to_leave()
    assert child.wait() == 3
    assert workers.counts().ready == 1


def test_a_worker_leaves_after_so_many_jobs(workers: WorkerFixture) -> None:
    child = workers.child(max_jobs=3, prefetch=1)
    jobs = [workers.send("c.echo", i) for i in range(5)]
    assert child.wait() == 0
    assert child.page.phase == LEAVING
    assert [job.result(PATIENCE) for job in jobs[:3]] == [0, 1, 2]
    assert workers.counts().ready == 2
    assert "3 jobs" in child.log


@pytest.mark.parametrize(
    ("task", "slots"),
    [("c.push", {}), ("c.push", {"threads": 4}), ("c.apush", {"async_slots": 4})],
    ids=["main-thread", "threads", "event-loop"],
)
def test_a_worker_begins_no_more_jobs_than_it_may(
    workers: WorkerFixture, task: str, slots: dict[str, int]
) -> None:
    key = f"{workers.name}:k"
    for number in range(40):
        workers.send(task, key, number)
    # it has taken more when it leaves, which may be before the test sees it at work
    child = workers.child(ready=False, max_jobs=3, prefetch=20, **slots)
    assert child.wait() == 0
    assert sorted(workers.redis.lrange(key, 0, -1)) == [b"0", b"1", b"2"]
    counts = workers.counts()
    assert (counts.ready, counts.held) == (37, 0)


@pytest.mark.parametrize(
    ("task", "slots"),
    [("c.push", {"threads": 2}), ("c.apush", {"async_slots": 2})],
    ids=["threads", "event-loop"],
)
def test_a_worker_that_leaves_waits_for_a_job_that_is_about_to_begin(
    workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch, task: str, slots: dict[str, int]
) -> None:
    """It has its slot, and is not seen to run yet: it would go back, and begin all the same."""
    begin, pause, waits = Executor._begin, Stop.pause, threading.Event()

    def late(self: Executor, *args: Any) -> Any:
        assert waits.wait(PATIENCE), "the worker left"
        return begin(self, *args)

    def noted(self: Stop, seconds: float) -> None:
        waits.set()
        pause(self, seconds)

    monkeypatch.setattr(Executor, "_begin", late)
    monkeypatch.setattr(Stop, "pause", noted)
    key = f"{workers.name}:k"
    job = workers.send(task, key, 1)
    child = workers.child(ready=False, max_jobs=1, **slots)
    assert child.wait() == 0, child.log
    assert workers.redis.lrange(key, 0, -1) == [b"1"]
    assert job.state() is JobState.DONE


@pytest.mark.parametrize(
    ("gate", "other", "slots"),
    [("c.gate", "c.push", {"threads": 2}), ("c.agate", "c.apush", {"async_slots": 2})],
    ids=["threads", "event-loop"],
)
def test_a_worker_that_makes_room_lets_its_jobs_end_however_long_they_take(
    workers: WorkerFixture, gate: str, other: str, slots: dict[str, int]
) -> None:
    key = f"{workers.name}:k"
    child = workers.child(max_jobs=2, drain=0, **slots)
    job = workers.send(gate, key)
    workers.hear(key)
    workers.send(other, f"{key}2", 1)
    eventually(lambda: child.page.phase == LEAVING, "the room for another one")
    workers.send(other, f"{key}2", 2)  # what would be begun next is of others
    workers.go(key)
    assert child.wait() == 0
    assert job.result(PATIENCE) == "through"
    assert workers.redis.lrange(f"{key}2", 0, -1) == [b"1"]
    assert workers.counts().ready == 1


def test_a_worker_that_makes_room_is_asked_to_leave_besides(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    child = workers.child(max_jobs=2, drain=0, threads=2)
    workers.send("c.gate", key)
    workers.hear(key)
    workers.send("c.echo", 1)
    eventually(lambda: child.page.phase == LEAVING, "the room for another one")
    child.page.ask(DRAIN)
    child.ask_to_leave()
    assert child.wait() == 3
    assert workers.counts().ready == 1


def test_a_worker_that_has_grown_leaves(workers: WorkerFixture) -> None:
    # it is forked from this process, and begins with all that this one has
    here = psutil.Process().memory_info().rss
    child = workers.child(max_rss=here + 200 * 1024 * 1024)
    workers.result("c.grow", 1)
    assert not child.exited
    workers.send("c.grow", 400)
    assert child.wait() == 0
    assert "MB of memory" in child.log
    workers.settled()
