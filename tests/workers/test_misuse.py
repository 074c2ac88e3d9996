"""Jobs that misuse their process: each has one outcome, and the pool goes on."""

from collections.abc import Callable

import psutil
import pytest

from rqueue.client._sync.queue import Call, Queue
from rqueue.errors import JobFailed
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually

Make = Callable[..., Pool]
APP = ["tests.workers.misuse_app"]


def fails(queue: Queue, task: str, *arguments: object) -> str:
    """Run a job that fails for good; what is said of it."""
    with pytest.raises(JobFailed) as caught:
        queue.enqueue(task, *arguments).result(PATIENCE)
    return str(caught.value)


def only(pool: Pool) -> int:
    (worker,) = psutil.Process(pool.pid).children()
    return worker.pid


@pytest.mark.parametrize("threads", [0, 2])
def test_what_a_job_raises_or_returns_may_raise_itself(
    make_pool: Make, queue: Queue, threads: int
) -> None:
    pool = make_pool(app=APP, threads=threads)
    before = queue.enqueue("pid").result(PATIENCE)
    assert "its text cannot be made: SystemExit" in fails(queue, "odd text")
    assert "its text cannot be made: SystemExit" in fails(queue, "aodd text")
    assert "NotesError" in fails(queue, "odd notes")
    assert "cannot be read: that raises SystemExit" in fails(queue, "odd class")
    assert "result of task 'odd result'" in fails(queue, "odd result")
    assert queue.enqueue("pid").result(PATIENCE) == before
    assert pool.drained() == 0
    assert "bug in rqueue" not in pool.log


def test_a_job_that_prints_much(make_pool: Make, queue: Queue, tmp_path: object) -> None:
    pool = make_pool(app=APP)
    assert queue.enqueue("print", 100).result(PATIENCE) is None
    assert pool.drained() == 0


def test_a_job_that_takes_too_much_memory_ends_well_and_its_process_after_it(
    make_pool: Make, queue: Queue
) -> None:
    pool = make_pool(app=APP, max_memory="200MB")
    before = queue.enqueue("grow", 400).result(PATIENCE)
    assert queue.enqueue("pid").result(PATIENCE) != before
    assert pool.drained() == 0
    assert "MB of memory" in pool.log


def test_a_job_that_blocks_the_loop_holds_up_the_others_and_no_lease(
    make_pool: Make, queue: Queue
) -> None:
    """C-33."""
    pool = make_pool(app=APP, lease="1s")
    jobs = [queue.enqueue("block", 2.5), queue.enqueue("apid"), queue.enqueue("pid")]
    assert [job.result(PATIENCE) for job in jobs] == ["blocked", only(pool), only(pool)]
    assert pool.drained() == 0
    assert queue.counts().dead == 0


def test_a_job_that_cancels_all_tasks_of_the_loop(make_pool: Make, queue: Queue) -> None:
    """Those that run have failed, once; those that had not begun do not notice."""
    pool = make_pool(app=APP)
    key = f"{queue.name}:k"
    wait = [Call("wait", (key,))] * 3
    jobs = queue.enqueue_many([*wait, Call("cancel all", (key,)), *wait])
    said = [job.result(PATIENCE) for job in jobs]
    assert said == [*["waited"] * 3, "cancelled them", *["waited"] * 3]
    assert pool.drained() == 0


def test_a_job_that_stops_the_loop_goes_on_and_so_do_others(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    assert queue.enqueue("stop loop").result(PATIENCE) == "went on"
    assert queue.enqueue("apid").result(PATIENCE) == only(pool)
    assert pool.drained() == 0


@pytest.mark.parametrize("how", ["task", "callback", "factory"])
def test_what_a_job_leaves_on_the_loop_ends_nobody_else(
    make_pool: Make, queue: Queue, how: str
) -> None:
    pool = make_pool(app=APP)
    assert queue.enqueue("leave a task that exits", how).result(PATIENCE) == "went on"
    for _ in range(3):
        assert queue.enqueue("apid").result(PATIENCE) == only(pool)
    assert pool.drained() == 0
    assert ("raised SystemExit; the loop goes on" in pool.log) == (how != "factory")


def test_a_job_that_cancels_itself_has_failed(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    assert "CancelledError" in fails(queue, "cancel itself")
    assert queue.enqueue("apid").result(PATIENCE) == only(pool)


def test_a_job_that_takes_the_signals_away(make_pool: Make, queue: Queue) -> None:
    """Its process does not hear that it is to leave; it is killed when the time is over."""
    pool = make_pool(app=APP, drain="100ms", grace="100ms")
    assert queue.enqueue("signals").result(PATIENCE) == "ignored"
    assert queue.enqueue("pid").result(PATIENCE) == only(pool)
    assert pool.drained() == 0
    assert "did not leave in time: killing it" in pool.log


@pytest.mark.parametrize("name", ["close", "close sockets"])
def test_a_job_that_closes_the_descriptors_is_charged(
    make_pool: Make, queue: Queue, name: str
) -> None:
    pool = make_pool(app=APP)
    job = queue.send(name, (), None, Options(max_deliveries=2))
    eventually(lambda: queue.counts().dead == 1, lambda: pool.log)
    with pytest.raises(JobFailed, match="exit code 71"):
        job.result(0)
    assert queue.enqueue("pid").result(PATIENCE) == only(pool)
    assert pool.drained() == 0
    assert f"job {job.id} of {name} closed file descriptors of the worker" in pool.log


@pytest.mark.parametrize(
    ("name", "threads"),
    [("close", 2), ("close and wait", 2), ("close async", 0), ("close async and wait", 0)],
)
def test_one_that_closes_them_beside_the_main_thread_is_charged_too(
    make_pool: Make, queue: Queue, name: str, threads: int
) -> None:
    """Else nobody would be, and each pool that gets it would give up, one after the other."""
    pool = make_pool(app=APP, threads=threads)
    job = queue.send(name, (), None, Options(max_deliveries=2))
    eventually(lambda: queue.counts().dead == 1, lambda: pool.log)
    with pytest.raises(JobFailed, match="exit code 71"):
        job.result(0)
    assert queue.enqueue("pid").result(PATIENCE) == only(pool)
    assert pool.drained() == Exit.OK
    assert "closed file descriptors of the worker: it ends" in pool.log
    assert "a bug in rqueue" not in pool.log


def test_a_worker_whose_jobs_took_all_descriptors_makes_room_when_redis_comes_back(
    make_pool: Make, queue: Queue
) -> None:
    """Else it would wait for ever, with what it holds: its supervisor renews the lease."""
    pool = make_pool(app=APP)
    queue.enqueue("take all descriptors").result(PATIENCE)
    before = queue.enqueue("pid").result(PATIENCE)
    queue.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    held = queue.enqueue("pid")
    assert held.result(PATIENCE) != before
    assert "no file descriptor is left for a connection" in pool.log
    assert queue.counts().dead == 0
    assert pool.drained() == Exit.OK


def test_a_job_that_lets_no_descriptor_block_takes_no_later_worker(
    make_pool: Make, queue: Queue
) -> None:
    """What says that the supervisor lives is one pipe of all workers, of those to come too."""
    pool = make_pool(app=APP, max_jobs=1)
    queue.enqueue("no blocking").result(PATIENCE)
    assert queue.enqueue("pid").result(PATIENCE) != queue.enqueue("pid").result(PATIENCE)
    assert pool.drained() == Exit.OK
    assert "the supervisor is gone" not in pool.log


def test_a_job_that_changes_the_user(make_pool: Make, queue: Queue) -> None:
    """It stays changed for the jobs that follow; the pool still ends the process."""
    pool = make_pool(app=APP)
    assert queue.enqueue("user").result(PATIENCE) == 65534
    assert queue.enqueue("pid").result(PATIENCE) == only(pool)
    assert pool.drained() == 0


def test_a_job_that_waits_for_one_that_needs_its_worker(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    job = queue.enqueue("wait for another", 1.0)
    with pytest.raises(JobFailed) as caught:
        job.result(PATIENCE)
    assert f"has one worker process, in which job '{job.id}' waits for it" in str(caught.value)
    assert "start the pool with more" in str(caught.value)
    assert pool.drained() == 0
