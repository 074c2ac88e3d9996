"""Threads and the event loop: jobs beside each other, and beside the main thread."""

import time

from rqueue.client._sync.queue import Call
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def test_as_many_jobs_at_once_as_threads(workers: WorkerFixture) -> None:
    child = workers.child(threads=3)
    keys = [f"{workers.name}:k{i}" for i in range(4)]
    jobs = [workers.send("c.gate", key, i) for i, key in enumerate(keys)]
    assert {workers.hear(key) for key in keys[:3]} == {"0", "1", "2"}
    eventually(lambda: len(child.page.running()) == 3)
    assert workers.redis.llen(keys[3]) == 0
    workers.go(keys[1])
    assert jobs[1].result(PATIENCE) == "through"
    assert workers.hear(keys[3]) == "3"
    for key in keys:
        workers.go(key)
    workers.settled()
    assert not child.page.running()


def test_jobs_that_no_thread_is_free_for_go_to_another_worker(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    workers.child(threads=1)
    workers.send("c.gate", key, "first")
    workers.hear(key)
    job = workers.send("c.pid")
    other = workers.child(threads=1)
    assert job.result(PATIENCE) == other.pid
    workers.go(key)


def test_threads_know_their_jobs(workers: WorkerFixture) -> None:
    workers.child(threads=2)
    job = workers.send("c.context", "x")
    context = job.result(PATIENCE)
    assert context["id"] == job.id
    assert context["thread"].startswith("rqueue-")


def test_failures_in_threads_and_on_the_loop(workers: WorkerFixture) -> None:
    workers.child(threads=2)
    assert workers.result("c.flaky", f"{workers.name}:n", 2) == "at last"
    job = workers.send("c.afail", "no")
    eventually(lambda: workers.counts().dead == 1, "its death")
    rows = [row for row in workers.history() if row["id"] == job.id and row["worker"]]
    assert [row["outcome"] for row in rows] == ["retry", "dead"]


def test_async_jobs_run_beside_each_other(workers: WorkerFixture) -> None:
    child = workers.child(async_slots=20)
    keys = [f"{workers.name}:k{i}" for i in range(20)]
    jobs = [workers.send("c.agate", key) for key in keys]
    for key in keys:
        workers.hear(key)
    assert len(child.page.running()) == 20
    for key in reversed(keys):
        workers.go(key)
    assert [job.result(PATIENCE) for job in jobs] == ["through"] * 20


def test_a_hundred_slots_are_kept_busy(workers: WorkerFixture) -> None:
    workers.queue.pause()
    for _ in range(400):
        workers.send("c.asleep", 0.1)
    workers.child(async_slots=100)
    begun = time.monotonic()
    workers.queue.resume()
    workers.settled()
    # 0.4 s at the best; one after the other it would be 40
    assert time.monotonic() - begun < 30


def test_an_async_job_knows_itself(workers: WorkerFixture) -> None:
    workers.child()
    jobs = [workers.send("c.acontext") for _ in range(10)]
    assert [job.result(PATIENCE) for job in jobs] == [job.id for job in jobs]


def test_a_long_sync_job_does_not_block_async_ones(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    workers.child()
    workers.result("c.asleep", 0)  # now it knows that such jobs come here
    gate = workers.send("c.gate", key)
    workers.hear(key)
    for i in range(5):
        workers.send("c.apush", key, i)
        assert workers.hear(key) == str(i)
    assert workers.counts().held == 1 or eventually(lambda: workers.counts().held == 1)
    workers.go(key)
    assert gate.result(PATIENCE) == "through"


def test_room_on_the_loop_takes_no_long_sync_jobs_from_other_workers(
    workers: WorkerFixture,
) -> None:
    """They know that async jobs come here, and how long the sync ones take: as long as each other,
    so that none of them is late."""
    children = [workers.child() for _ in range(2)]
    for _ in children:
        taught = [workers.send("c.asleep", 0), workers.send("c.napping_pid", 0.3)]
        for job in taught:
            job.result(PATIENCE)
    workers.queue.pause()
    pids = [workers.send("c.napping_pid", 0.3) for _ in range(8)]
    workers.queue.resume()
    assert {job.result(PATIENCE) for job in pids} == {child.pid for child in children}


def test_a_full_loop_does_not_block_sync_jobs(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    workers.child(async_slots=2)
    for _ in range(2):
        workers.send("c.agate", key)
    for _ in range(2):
        workers.hear(key)
    workers.send("c.agate", key)
    assert workers.result("c.echo", 3) == 3
    for _ in range(3):
        workers.go(key)
    workers.settled()


def test_without_async_slots_async_tasks_wait_elsewhere(workers: WorkerFixture) -> None:
    workers.child(async_slots=0)
    workers.send("c.asleep", 0)
    eventually(lambda: workers.counts().parked == 1, "a parked job")
    workers.child()
    workers.settled()


def test_an_unknown_task_disturbs_no_thread(workers: WorkerFixture) -> None:
    """It is passed on while jobs end that nobody has waited for yet."""
    child = workers.child(threads=2)
    calls = [Call("c.nope"), *[Call("c.nap", (0.02,)) for _ in range(40)]]
    workers.queue.enqueue_many(calls)
    eventually(lambda: workers.counts().parked == 1, "a parked job")
    eventually(lambda: workers.counts().meta.get("acked") == "40", "the end of the others")
    assert child.leave() == 0
    assert workers.counts().dead == 0
