"""What a worker holds: as much as it can run soon, never at the expense of others."""

import random
import threading
from pathlib import Path

import pytest

from rqueue_workers.worker.prefetch import FIRST
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def test_a_long_job_keeps_nobody_waiting(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    long = workers.send("c.gate", key)
    short = [workers.send("c.echo", i) for i in range(5)]
    workers.child()
    workers.hear(key)
    # the same worker held them: they went back, uncounted, to where they stood
    eventually(lambda: workers.counts().ready == 5, "the give-back")
    assert workers.counts().held == 1
    assert workers.counts().not_interested == 1
    page = [job.id for job in _waiting(workers)]
    assert page == [job.id for job in short]
    assert {job.attempts for job in _waiting(workers)} == {0}
    workers.child()
    assert [job.result(PATIENCE) for job in short] == [0, 1, 2, 3, 4]
    workers.go(key)
    assert long.result(PATIENCE) == "through"


def _waiting(workers: WorkerFixture) -> list[object]:
    from rqueue.protocol import commands
    from rqueue.transport.redis_client import execute

    return execute(workers.redis, commands.browse(workers.queue.keys)).jobs


def test_a_job_that_arrives_behind_a_long_one_is_left_to_others(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    first = workers.child()
    workers.send("c.gate", key)
    workers.hear(key)
    second = workers.child()
    assert workers.result("c.pid") == second.pid
    workers.go(key)
    second.leave()
    assert workers.result("c.pid") == first.pid


def test_what_ended_before_a_long_job_is_settled_while_that_runs(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    workers.queue.pause()
    done = workers.send("c.echo", "quick")
    workers.send("c.gate", key)
    workers.child()
    workers.queue.resume()
    workers.hear(key)
    assert done.result(PATIENCE) == "quick"  # the gate is closed all the while
    workers.go(key)


def test_the_window_follows_how_long_jobs_take(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    for _ in range(2000):
        workers.send("c.noop")
    workers.send("c.gate", key)
    child = workers.child(async_slots=0)
    workers.hear(key)
    window = int(workers.redis.hget(workers.queue.keys.consumer(f"{child.base}.0"), "jobs"))
    assert workers.counts().ready == 0
    # it had grown to the most, and shrank to nothing while the long one runs
    assert eventually(
        lambda: workers.redis.hget(workers.queue.keys.consumer(f"{child.base}.0"), "jobs") == b"1",
        f"a small window, not {window}",
    )
    batches = workers.redis.xlen(workers.queue.keys.history)
    assert batches < 500, "of 2,000 jobs: on a busy machine jobs look long, and windows are smaller"
    workers.go(key)


def test_quick_jobs_teach_also_where_they_come_one_by_one(workers: WorkerFixture) -> None:
    child = workers.child(async_slots=0)
    consumer = workers.queue.keys.consumer(f"{child.base}.0")

    def grown() -> bool:
        workers.result("c.echo", 1)
        return int(workers.redis.hget(consumer, "jobs")) > FIRST

    assert eventually(grown, "a larger window")


@pytest.mark.parametrize("prefetch", [1, 3])
def test_prefetch_fixes_the_window(workers: WorkerFixture, prefetch: int) -> None:
    key = f"{workers.name}:k"
    workers.queue.pause()
    for i in range(6):
        workers.send("c.gate", key, i)
    child = workers.child(prefetch=prefetch, threads=1, async_slots=0)
    held = workers.queue.keys.held(f"{child.base}.0")
    with monitoring(workers.url) as monitor:
        workers.queue.resume()
        assert workers.hear(key) == "0"
        # seen as it comes: while the first one runs, the others are released soon
        _, _, *ids = monitor.wait_for("rpush", held).split()
        assert len(ids) == prefetch
    for i in range(1, 6):
        workers.go(key)
        assert workers.hear(key) == str(i)
        assert workers.redis.llen(held) <= prefetch
    workers.go(key)
    workers.settled()


def test_jobs_run_in_their_order(workers: WorkerFixture) -> None:
    key = f"{workers.name}:k"
    workers.queue.pause()
    for i in range(600):
        workers.send("c.push", key, i)
    workers.child()
    workers.queue.resume()
    workers.settled()
    assert [int(item) for item in workers.redis.lrange(key, 0, -1)] == list(range(600))


def test_what_a_long_job_sends_back_begins_before_what_came_meanwhile(
    workers: WorkerFixture, tmp_path: Path
) -> None:
    """Q-01: also where the later one is handed to the same worker before the other is back."""
    path = tmp_path / "begun"
    workers.child(async_slots=0)
    draw, pause = random.Random(3), threading.Event()
    for i in range(400):
        seconds = draw.choice((0, 0, 0.001, 0.002, 0.005, 0.02))
        workers.send("c.note_and_nap", str(path), i, seconds)
        pause.wait(draw.choice((0, 0.001, 0.005, 0.01, 0.03)))
        if i % 7 == 0:  # what is lost is asked for, and taken again
            workers.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    workers.settled()
    begun = [int(line) for line in path.read_text().splitlines()]
    assert begun == list(range(400))
