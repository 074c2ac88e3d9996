"""Tasks whose jobs are acked before they begin: each runs at most once, wherever it runs (Q-24)."""

import os
import signal
from datetime import timedelta

import pytest

from rqueue.errors import ConfigError
from rqueue.protocol import commands
from rqueue.tasks.decorator import task
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually

WHERE = pytest.mark.parametrize(
    ("name", "threads"), [("c.early", 0), ("c.early", 2), ("c.aearly", 0)]
)


def end_leases(workers: WorkerFixture) -> None:
    """What a supervisor sees to, after so long."""
    move_time(workers.queue, timedelta(minutes=11))
    execute(workers.redis, commands.renew(workers.queue.keys, 600_000, []))


@WHERE
def test_a_killed_worker_s_job_does_not_come_again(
    workers: WorkerFixture, name: str, threads: int
) -> None:
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(name, key)
    assert workers.hear(key) == "in"
    assert (workers.counts().held, job.state()) == (0, "done")
    worker.kill()
    end_leases(workers)
    workers.child(threads=threads)
    assert workers.result("c.echo", 1) == 1
    assert workers.redis.llen(key) == 0
    assert workers.counts().meta["acked"] == "2"


@pytest.mark.parametrize(("name", "threads"), [("c.gate", 0), ("c.gate", 2), ("c.agate", 0)])
def test_one_that_is_acked_late_does(workers: WorkerFixture, name: str, threads: int) -> None:
    """The other side of it, in the same way."""
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(name, key)
    assert workers.hear(key) == "in"
    assert job.state() == "held"
    worker.kill()
    end_leases(workers)
    workers.child(threads=threads)
    assert workers.hear(key) == "in"
    workers.go(key)
    eventually(lambda: job.state() == "done", "its end")


@WHERE
def test_a_job_that_is_no_longer_held_does_not_begin(
    workers: WorkerFixture, name: str, threads: int
) -> None:
    """It was delivered, and its worker froze; another consumer has it since."""
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    # stopped earlier it would not listen, and has no supervisor that says that its lease ended
    eventually(lambda: workers.redis.info("clients")["blocked_clients"], "that it listens")
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        job = workers.send(name, key)
        assert job.state() == "held"
        end_leases(workers)
        with workers.queue.consumer(renew=False) as other:
            received = other.receive(PATIENCE)
            assert received is not None and received.id == job.id
            assert other.ack(received)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    assert workers.result("c.echo", 1) == 1
    assert workers.redis.llen(key) == 0


@WHERE
def test_it_runs_to_its_end_when_the_worker_leaves(
    workers: WorkerFixture, name: str, threads: int
) -> None:
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(name, key)
    assert workers.hear(key) == "in"
    worker.ask_to_leave()
    workers.go(key)
    assert worker.wait() == 0
    assert "released" not in worker.log
    assert job.result(PATIENCE) is None


@pytest.mark.parametrize("threads", [0, 2])
def test_a_failure_is_logged_and_not_tried_again(workers: WorkerFixture, threads: int) -> None:
    worker = workers.child(threads=threads)
    job = workers.send("c.early_failure")
    assert workers.result("c.echo", 1) == 1
    assert job.state() == "done"
    eventually(lambda: "acked before it began: ValueError: too late" in worker.log, "the log")
    assert [row["outcome"] for row in workers.history() if row["id"] == job.id] == ["ack"]


def test_many_of_them(workers: WorkerFixture) -> None:
    """Between others, in order."""
    workers.child()
    key = f"{workers.name}:k"
    for _ in range(20):
        workers.go(key)
        workers.send("c.early", key)
        workers.send("c.push", key, "plain")
    assert [workers.hear(key) for _ in range(40)] == ["in", "plain"] * 20
    workers.settled()


def test_what_is_no_moment() -> None:
    with pytest.raises(ConfigError, match="'late' nor 'early'"):
        task(ack="never")  # type: ignore[call-overload]
