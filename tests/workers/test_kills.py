"""Jobs that are cancelled while their code, or their whole process, hears of nothing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rqueue.client._sync.queue import Queue
from rqueue.model.cancellation import Cancellation
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually

Make = Callable[..., Pool]
APP = ["tests.workers.shared_app"]


@pytest.mark.parametrize("threads", [0, 1])
def test_code_that_holds_the_lock_is_killed_by_the_supervisor(
    make_pool: Make, queue: Queue, tmp_path: Path, threads: int
) -> None:
    pool = make_pool(app=APP, lease="2s", threads=threads)
    job = queue.enqueue("s.deaf", str(tmp_path / "begun"))
    eventually((tmp_path / "begun").exists)
    assert job.cancel(running=True) is Cancellation.REQUESTED
    assert job.cancel(kill=True, timeout=PATIENCE) is Cancellation.ENDED
    assert queue.enqueue("s.see", "threads").result(PATIENCE) is False, "the next job runs"
    assert pool.drained() == 0


def test_a_worker_that_is_only_frozen_has_not_ended(
    make_pool: Make, queue: Queue, tmp_path: Path
) -> None:
    pool = make_pool(app=APP, lease="2s")
    job = queue.enqueue("s.deaf", str(tmp_path / "begun"))
    eventually((tmp_path / "begun").exists)
    (worker,) = psutil.Process(pool.pid).children()
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        other = make_pool(app=APP, lease="2s")  # takes back what it held
        assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.REQUESTED
        assert other.drained() == 0
    finally:
        os.kill(worker.pid, signal.SIGKILL)


def test_a_worker_that_died_while_it_ran_a_cancelled_job_has_ended(
    make_pool: Make, queue: Queue, tmp_path: Path
) -> None:
    pool = make_pool(app=APP)
    job = queue.enqueue("s.deaf", str(tmp_path / "begun"))
    eventually((tmp_path / "begun").exists)
    assert job.cancel(running=True) is Cancellation.REQUESTED
    (worker,) = psutil.Process(pool.pid).children()
    os.kill(worker.pid, signal.SIGKILL)
    assert job.cancel(running=True, timeout=PATIENCE) is Cancellation.ENDED
    assert pool.drained() == 0
