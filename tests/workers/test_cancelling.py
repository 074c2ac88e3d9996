"""A running job that is cancelled with force: its code is interrupted, or its process killed, and
what is said of it. Real processes."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import JobCancelled
from rqueue.model.cancellation import Cancellation
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture
from tests.workers.pools import Pool, Watched, eventually, go, pop, started


@pytest.mark.parametrize("threads", [0, 2])
def test_code_that_runs_gets_an_exception(workers: WorkerFixture, threads: int) -> None:
    worker = workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.run_on", key)
    assert workers.hear(key) == "in"
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert workers.hear(key) == "Cancelled False"
    with pytest.raises(JobCancelled):
        job.result(PATIENCE)
    assert workers.result("c.echo", 2) == 2  # the next one is left alone
    assert "failed" not in worker.log
    assert "dropped" not in worker.log
    assert [row["outcome"] for row in workers.history() if row["id"] == job.id] == ["cancelled"]


def test_the_main_thread_is_woken_from_what_it_waits_in(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.gate", key)
    assert workers.hear(key) == "in"
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert workers.result("c.echo", 2) == 2


def test_an_async_job_says_that_it_has_stopped(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.agate", key)
    assert workers.hear(key) == "in"
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert workers.hear(key) == "cancelled"


@pytest.mark.parametrize("threads", [0, 2])
def test_requested_delivered_and_ended_are_told_apart(workers: WorkerFixture, threads: int) -> None:
    workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.stubborn", key)
    assert workers.hear(key) == "in"
    assert job.cancel(running=True) is not Cancellation.NONE
    assert workers.hear(key) == "Cancelled False"
    stage = commands.read_stop(workers.queue.keys, job.id)
    eventually(lambda: execute(workers.redis, stage).stage == "delivered")
    assert job.cancel(running=True) is Cancellation.DELIVERED
    workers.go(key)
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED


def test_a_thread_that_waits_in_c_is_not_interrupted_before_it_comes_back(
    workers: WorkerFixture, tmp_path: Path
) -> None:
    workers.child(threads=1)
    path = tmp_path / "in"
    os.mkfifo(f"{path}.go")
    job = workers.send("c.in_c", str(path))
    eventually(path.exists)
    assert job.cancel(running=True) is Cancellation.REQUESTED
    assert job.cancel(running=True) is Cancellation.REQUESTED
    Path(f"{path}.go").write_text("go")
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert workers.result("c.echo", 2) == 2


def test_what_waits_ends_at_once_and_what_has_ended_is_not_cancelled(
    workers: WorkerFixture,
) -> None:
    job = workers.send("c.echo", 1)
    assert job.cancel(running=True) is Cancellation.ENDED
    assert job.cancel(running=True) is Cancellation.NONE
    assert not job.cancel()
    assert not workers.queue.cancel("nobody", kill=True)


@pytest.mark.parametrize("threads", [0, 2])
def test_the_next_job_is_never_hit(workers: WorkerFixture, threads: int) -> None:
    """Jobs of about a millisecond are cancelled as they run: what is cancelled late must not hit
    the one behind it."""
    worker = workers.child(threads=threads)
    stop = threading.Event()
    sent = [workers.send("c.nap", 0.001) for _ in range(160)]
    ends: list[Cancellation] = []

    def cancel_each() -> None:
        with Queue(workers.name, workers.url) as queue:
            for job in sent[::2]:
                if stop.is_set():
                    return
                ends.append(queue.cancel(job.id, running=True, timeout=PATIENCE))

    canceller = threading.Thread(target=cancel_each)
    canceller.start()
    try:
        for job in sent[1::2]:
            job.result(PATIENCE)  # raises where it was hit
    finally:
        stop.set()
        canceller.join()
    workers.settled()
    assert set(ends) <= {Cancellation.NONE, Cancellation.ENDED}
    assert "fails" not in worker.log
    assert "failed" not in worker.log


def test_a_process_is_killed_with_its_job(make_pool: Callable[..., Pool], queue: Queue) -> None:
    pool = make_pool(threads=2)
    key = f"{queue.name}:k"
    job = queue.send("hold", [key])
    pid = started(queue.redis, key)
    other = queue.send("who", [key])
    assert started(queue.redis, key) == pid
    process = Watched(pid)
    assert job.cancel(kill=True, timeout=PATIENCE) is Cancellation.ENDED
    process.ended()
    # its neighbour goes back, and nobody is charged
    assert started(queue.redis, key) != pid
    go(queue.redis, key)
    assert other.result(PATIENCE) != pid
    assert str(job.state()) == "cancelled"
    assert "was cancelled, and its process with it" in pool.log
    assert pool.drained() == 0


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("running", [True, False])
def test_a_later_cancel_that_asks_for_more_reaches_code_that_runs_on(
    make_pool: Callable[..., Pool], queue: Queue, running: bool, threads: int
) -> None:
    pool = make_pool(threads=threads)
    key = f"{queue.name}:k"
    job = queue.send("obstinate", [key])
    pid = started(queue.redis, key)
    assert job.cancel(running=running) is not Cancellation.NONE
    if running and not threads:
        assert pop(queue.redis, f"{key}:raised") == "Cancelled"
    process = Watched(pid)
    assert job.cancel(kill=True, timeout=PATIENCE) is Cancellation.ENDED
    process.ended()
    assert str(job.state()) == "cancelled"
    after = queue.send("hold", [key])
    assert started(queue.redis, key) != pid
    go(queue.redis, key)
    assert after.result(PATIENCE) == "done"
    assert pool.drained() == 0


@pytest.mark.parametrize("threads", [0, 2])
def test_what_was_cancelled_without_force_can_be_interrupted_later(
    workers: WorkerFixture, threads: int
) -> None:
    workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.run_on", key)
    assert workers.hear(key) == "in"
    assert job.cancel() is Cancellation.REQUESTED
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert workers.hear(key).startswith("Cancelled")
    assert workers.result("c.echo", 2) == 2


@pytest.mark.parametrize("threads", [0, 2])
def test_what_has_returned_by_a_later_cancel_has_ended(
    workers: WorkerFixture, threads: int
) -> None:
    workers.child(threads=threads)
    key = f"{workers.name}:k"
    job = workers.send("c.gate", key)
    assert workers.hear(key) == "in"
    assert job.cancel() is Cancellation.REQUESTED
    workers.go(key)
    assert workers.result("c.echo", 2) == 2
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED


def test_a_worker_that_dies_takes_the_request_with_it(
    make_pool: Callable[..., Pool], queue: Queue
) -> None:
    make_pool(threads=1)
    key = f"{queue.name}:k"
    job = queue.send("obstinate", [key])  # its thread may not wait yet, but it does not end
    pid = started(queue.redis, key)
    assert job.cancel(running=True) in (Cancellation.REQUESTED, Cancellation.DELIVERED)
    Watched(pid).kill(signal.SIGKILL)
    eventually(lambda: job.cancel(running=True) is Cancellation.ENDED)
    next_ = queue.send("hold", [key])
    assert started(queue.redis, key) != pid
    go(queue.redis, key)
    assert next_.result(PATIENCE) == "done"
