"""A process that a job forks is the job's own: it never becomes a worker."""

from collections.abc import Callable

import psutil
import pytest

from rqueue.client._sync.queue import Queue
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually

Make = Callable[..., Pool]
APP = ["tests.workers.misuse_app"]

STATUS = {"returns": 0, "returns nothing": 0, "exits": 7, "raises": 1}


@pytest.fixture(params=["main", "threads", "loop"])
def executor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_child_ends_where_the_job_does(make_pool: Make, queue: Queue, executor: str) -> None:
    pool = make_pool(app=APP, threads=2 if executor == "threads" else 0)
    task = "afork" if executor == "loop" else "fork"
    jobs = {how: queue.enqueue(task, how) for how in STATUS}
    ends = {how: job.result(PATIENCE) for how, job in jobs.items()}
    assert ends == STATUS
    assert "ValueError: in the child" in pool.log
    # nothing else was there to take this
    assert queue.enqueue("pid").result(PATIENCE) in workers(pool)
    assert pool.drained() == 0
    assert queue.counts().dead == 0


def test_a_job_with_a_limit_too(make_pool: Make, queue: Queue) -> None:
    make_pool(app=APP)
    assert queue.enqueue("fork with a limit", "exits").result(PATIENCE) == 7


def test_a_child_that_waits_on_the_loop_ends_there(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    others = [queue.enqueue("wait", f"{queue.name}:k") for _ in range(5)]
    assert queue.enqueue("afork and wait").result(PATIENCE) == 0
    assert [job.result(PATIENCE) for job in others] == ["waited"] * 5
    assert queue.redis.llen(f"{queue.name}:k") == 5
    assert pool.drained() == 0


def test_children_that_nobody_waits_for_leave_nothing(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    jobs = [queue.enqueue("fork and leave") for _ in range(10)]
    children = [job.result(PATIENCE) for job in jobs]
    assert all(children)  # the parent's result, not the child's 0
    (worker,) = workers(pool)
    eventually(lambda: all(map(ended, psutil.Process(worker).children())))
    assert pool.drained() == 0


def test_sigterm_ends_a_child(make_pool: Make, queue: Queue) -> None:
    make_pool(app=APP)
    assert queue.enqueue("kill child").result(PATIENCE) == -15


def test_multiprocessing_works(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP, threads=2)
    jobs = [queue.enqueue("multiprocessing") for _ in range(4)]
    assert all(job.result(PATIENCE) == [2 * n for n in range(10)] for job in jobs)
    assert pool.drained() == 0


def workers(pool: Pool) -> list[int]:
    return [process.pid for process in psutil.Process(pool.pid).children()]


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
