"""What a worker holds: as much as it can run soon, never at the expense of others."""

import random
import threading
import time
from pathlib import Path

import pytest

from tests.support.monitor import monitoring
from tests.workers.children import Bench, eventually


def test_a_long_job_keeps_nobody_waiting(bench: Bench) -> None:
    key = f"{bench.name}:k"
    long = bench.send("c.gate", key)
    short = [bench.send("c.echo", i) for i in range(5)]
    bench.child()
    bench.hear(key)
    # they were in the same hands: they went back, uncounted, to where they stood
    eventually(lambda: bench.counts().ready == 5, "the give-back")
    assert bench.counts().held == 1
    assert bench.counts().not_interested == 1
    page = [job.id for job in _waiting(bench)]
    assert page == [job.id for job in short]
    assert {job.attempts for job in _waiting(bench)} == {0}
    bench.child()
    assert [job.result(10) for job in short] == [0, 1, 2, 3, 4]
    bench.go(key)
    assert long.result(10) == "through"


def _waiting(bench: Bench) -> list[object]:
    from rqueue.protocol import commands
    from rqueue.transport.redis_client import execute

    return execute(bench.redis, commands.browse(bench.queue.keys)).jobs


def test_a_job_that_arrives_behind_a_long_one_is_left_to_others(bench: Bench) -> None:
    key = f"{bench.name}:k"
    first = bench.child()
    bench.send("c.gate", key)
    bench.hear(key)
    second = bench.child()
    assert bench.result("c.pid") == second.pid
    bench.go(key)
    second.leave()
    assert bench.result("c.pid") == first.pid


def test_what_ended_before_a_long_job_is_settled_while_that_runs(bench: Bench) -> None:
    key = f"{bench.name}:k"
    bench.queue.pause()
    done = bench.send("c.echo", "quick")
    bench.send("c.gate", key)
    bench.child()
    bench.queue.resume()
    bench.hear(key)
    begun = time.monotonic()
    assert done.result(10) == "quick"
    assert time.monotonic() - begun < 1  # some ms, on a machine with nothing else to do
    bench.go(key)


def test_the_window_follows_how_long_jobs_take(bench: Bench) -> None:
    key = f"{bench.name}:k"
    for _ in range(2000):
        bench.send("c.noop")
    bench.send("c.gate", key)
    child = bench.child(async_slots=0)
    bench.hear(key)
    window = int(bench.redis.hget(bench.queue.keys.consumer(f"{child.base}.0"), "jobs"))
    assert bench.counts().ready == 0
    # it had grown to the most, and shrank to nothing while the long one runs
    assert eventually(
        lambda: bench.redis.hget(bench.queue.keys.consumer(f"{child.base}.0"), "jobs") == b"1",
        f"a small window, not {window}",
    )
    batches = bench.redis.xlen(bench.queue.keys.history)
    assert batches < 200
    bench.go(key)


@pytest.mark.parametrize("prefetch", [1, 3])
def test_prefetch_fixes_the_window(bench: Bench, prefetch: int) -> None:
    key = f"{bench.name}:k"
    bench.queue.pause()
    for i in range(6):
        bench.send("c.gate", key, i)
    child = bench.child(prefetch=prefetch, threads=1, async_slots=0)
    held = bench.queue.keys.held(f"{child.base}.0")
    with monitoring(bench.url) as monitor:
        bench.queue.resume()
        assert bench.hear(key) == "0"
        # seen as it comes: while the first one runs, the others are given back soon
        _, _, *ids = monitor.wait_for("rpush", held).split()
        assert len(ids) == prefetch
    for i in range(1, 6):
        bench.go(key)
        assert bench.hear(key) == str(i)
        assert bench.redis.llen(held) <= prefetch
    bench.go(key)
    bench.settled()


def test_jobs_run_in_their_order(bench: Bench) -> None:
    key = f"{bench.name}:k"
    bench.queue.pause()
    for i in range(600):
        bench.send("c.push", key, i)
    bench.child()
    bench.queue.resume()
    bench.settled()
    assert [int(item) for item in bench.redis.lrange(key, 0, -1)] == list(range(600))


def test_what_a_long_job_sends_back_begins_before_what_came_meanwhile(
    bench: Bench, tmp_path: Path
) -> None:
    """Q-01: also where the later one is handed to the same worker before the other is back."""
    path = tmp_path / "begun"
    bench.child(async_slots=0)
    draw, pause = random.Random(3), threading.Event()
    for i in range(400):
        seconds = draw.choice((0, 0, 0.001, 0.002, 0.005, 0.02))
        bench.send("c.note_and_nap", str(path), i, seconds)
        pause.wait(draw.choice((0, 0.001, 0.005, 0.01, 0.03)))
        if i % 7 == 0:  # what is lost is asked for, and taken again
            bench.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    bench.settled()
    begun = [int(line) for line in path.read_text().splitlines()]
    assert begun == list(range(400))
