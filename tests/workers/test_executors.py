"""Threads and the event loop: jobs beside each other, and beside the main thread."""

import time

from rqueue.client._sync.queue import Call
from tests.workers.children import Bench, eventually


def test_as_many_jobs_at_once_as_threads(bench: Bench) -> None:
    child = bench.child(threads=3)
    keys = [f"{bench.name}:k{i}" for i in range(4)]
    jobs = [bench.send("c.gate", key, i) for i, key in enumerate(keys)]
    assert {bench.hear(key) for key in keys[:3]} == {"0", "1", "2"}
    assert len(child.page.running()) == 3
    assert bench.redis.llen(keys[3]) == 0
    bench.go(keys[1])
    assert jobs[1].result(10) == "through"
    assert bench.hear(keys[3]) == "3"
    for key in keys:
        bench.go(key)
    bench.settled()
    assert not child.page.running()


def test_jobs_that_no_thread_is_free_for_go_to_another_worker(bench: Bench) -> None:
    key = f"{bench.name}:k"
    bench.child(threads=1)
    bench.send("c.gate", key, "first")
    bench.hear(key)
    job = bench.send("c.pid")
    other = bench.child(threads=1)
    assert job.result(10) == other.pid
    bench.go(key)


def test_threads_know_their_jobs(bench: Bench) -> None:
    bench.child(threads=2)
    job = bench.send("c.context", "x")
    told = job.result(10)
    assert told["id"] == job.id
    assert told["thread"].startswith("rqueue-")


def test_failures_in_threads_and_on_the_loop(bench: Bench) -> None:
    bench.child(threads=2)
    assert bench.result("c.flaky", f"{bench.name}:n", 2) == "at last"
    job = bench.send("c.afail", "no")
    eventually(lambda: bench.counts().dead == 1, "its death")
    rows = [row for row in bench.history() if row["id"] == job.id and row["worker"]]
    assert [row["outcome"] for row in rows] == ["retry", "dead"]


def test_async_jobs_run_beside_each_other(bench: Bench) -> None:
    child = bench.child(async_slots=20)
    keys = [f"{bench.name}:k{i}" for i in range(20)]
    jobs = [bench.send("c.agate", key) for key in keys]
    for key in keys:
        bench.hear(key)
    assert len(child.page.running()) == 20
    for key in reversed(keys):
        bench.go(key)
    assert [job.result(10) for job in jobs] == ["through"] * 20


def test_a_hundred_slots_are_kept_busy(bench: Bench) -> None:
    bench.queue.pause()
    for _ in range(400):
        bench.send("c.asleep", 0.1)
    bench.child(async_slots=100)
    begun = time.monotonic()
    bench.queue.resume()
    bench.settled()
    # 0.4 s at the best; one after the other it would be 40
    assert time.monotonic() - begun < 2


def test_an_async_job_knows_itself(bench: Bench) -> None:
    bench.child()
    jobs = [bench.send("c.acontext") for _ in range(10)]
    assert [job.result(10) for job in jobs] == [job.id for job in jobs]


def test_a_long_sync_job_does_not_block_async_ones(bench: Bench) -> None:
    key = f"{bench.name}:k"
    bench.child()
    bench.result("c.asleep", 0)  # now it knows that such jobs come here
    gate = bench.send("c.gate", key)
    bench.hear(key)
    for i in range(5):
        bench.send("c.apush", key, i)
        assert bench.hear(key) == str(i)
    assert bench.counts().held == 1 or eventually(lambda: bench.counts().held == 1)
    bench.go(key)
    assert gate.result(10) == "through"


def test_a_full_loop_does_not_block_sync_jobs(bench: Bench) -> None:
    key = f"{bench.name}:k"
    bench.child(async_slots=2)
    for _ in range(2):
        bench.send("c.agate", key)
    for _ in range(2):
        bench.hear(key)
    bench.send("c.agate", key)
    assert bench.result("c.echo", 3) == 3
    for _ in range(3):
        bench.go(key)
    bench.settled()


def test_without_async_slots_async_tasks_wait_elsewhere(bench: Bench) -> None:
    bench.child(async_slots=0)
    bench.send("c.asleep", 0)
    eventually(lambda: bench.counts().parked == 1, "a parked job")
    bench.child()
    bench.settled()


def test_an_unknown_task_disturbs_no_thread(bench: Bench) -> None:
    """It is passed on while jobs end that nobody has waited for yet."""
    child = bench.child(threads=2)
    calls = [Call("c.nope"), *[Call("c.nap", (0.02,)) for _ in range(40)]]
    bench.queue.enqueue_many(calls)
    eventually(lambda: bench.counts().parked == 1, "a parked job")
    eventually(lambda: bench.counts().meta.get("acked") == "40", "the end of the others")
    assert child.leave() == 0
    assert bench.counts().dead == 0
