"""Durable steps and positions of loops: through kills, drains, retries and dead letters. Real
processes."""

import os
import signal

import pytest

from rqueue import Queue, Settings
from rqueue.errors import JobFailed
from rqueue.inspector import Inspector
from rqueue.model.steps import KeptSteps
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.workers.children import ChildProcess, WorkerFixture

APPS = ("tests.workers.child_app", "tests.workers.steps_app")


def reclaimed(workers: WorkerFixture, worker: ChildProcess) -> None:
    """The process is killed, and what it held goes back, as by its supervisor."""
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    cause = b'{"kind":"crash","type":"SIGKILL"}'
    call = commands.reclaim(workers.queue.keys, f"{worker.base}.0", cause, [])
    while execute(workers.redis, call).held:
        pass


@pytest.mark.parametrize(("task", "threads"), [("c.order", 0), ("c.order", 2), ("c.aorder", 0)])
def test_a_step_is_done_once_through_a_kill(
    workers: WorkerFixture, task: str, threads: int
) -> None:
    worker = workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(task, key)
    assert [workers.hear(key), workers.hear(key)] == ["charged", "in"]
    with Inspector(workers.url) as inspector:
        assert inspector.job(job.id).job.steps == {"charge": {"number": 7}}
    reclaimed(workers, worker)
    workers.child(app=APPS, threads=threads)
    assert workers.hear(key) == "in"  # not charged again
    workers.go(key)
    result = job.result(PATIENCE)
    if task == "c.order":
        assert result == {"charge": {"number": 7}, "again": {}, "key": f"{job.id}:charge"}
    else:
        assert result == {"number": 7}
    # nothing is left of it, and no consumer is thought to hold a byte
    names = [name.decode() for name in workers.redis.zrange(workers.queue.keys.consumers, 0, -1)]
    held = [workers.redis.hget(workers.queue.keys.consumer(name), "held_bytes") for name in names]
    assert held == [b"0"]
    assert not workers.redis.exists(workers.queue.keys.jobs)


@pytest.mark.parametrize(("task", "threads"), [("c.loop", 0), ("c.loop", 2), ("c.aloop", 0)])
def test_a_loop_goes_on_where_the_worker_stopped(
    workers: WorkerFixture, task: str, threads: int
) -> None:
    worker = workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:k"
    job = workers.send(task, key, 5)
    assert [workers.hear(key) for _ in range(4)] == ["1", "2", "3", "third"]
    assert worker.leave() == 0
    assert execute(workers.redis, commands.show(workers.queue.keys, job.id)).state == "ready"
    workers.child(app=APPS, threads=threads)
    assert job.result(PATIENCE) == "over"
    assert [workers.hear(key), workers.hear(key)] == ["4", "5"]
    (row,) = [row for row in workers.history() if row["outcome"] == "ack"]
    assert row["attempts"] == 0  # uncounted


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("twice", "'a': the name is there twice"),
        ("many", "'s1000': a job has at most 1000 steps"),
        ("position", "'rows': its position: <object .* has no JSON form"),
        ("large", "at most 65,536 fit"),
        ("all", "at most 400,000 fit"),
        ("object", "object"),
    ],
)
def test_what_cannot_be_kept_fails_with_a_sentence(
    workers: WorkerFixture, how: str, said: str
) -> None:
    workers.child(app=APPS)
    job = workers.send("c.too_much", how)
    with pytest.raises(JobFailed, match=said) as caught:
        job.result(PATIENCE)
    assert (caught.value.type, caught.value.attempts) == ("rqueue.errors.NotKept", 1)
    assert workers.heard(f"{job.id}:row") == []  # the first row is checked before its turn
    value = execute(workers.redis, commands.show(workers.queue.keys, job.id)).value
    kept = KeptSteps.of(value).results
    assert len(kept) == {"twice": 1, "all": 4, "many": 1000}.get(
        how, 0
    )  # a dead letter has its steps


@pytest.mark.parametrize(
    ("task", "threads"), [("c.failing_loop", 0), ("c.failing_loop", 2), ("c.failing_aloop", 0)]
)
@pytest.mark.parametrize("bad", [{7: 1}, {0: 1, 3: 2, 4: 1, 7: 1}])
def test_rows_whose_turn_is_over_are_not_done_again_by_a_retry(
    workers: WorkerFixture, task: str, threads: int, bad: dict[int, int]
) -> None:
    workers.child(app=APPS, threads=threads)
    key = f"{workers.name}:rows"
    job = workers.send(task, key, {str(row): times for row, times in bad.items()})
    assert job.result(PATIENCE) == "over"
    assert workers.heard(key) == [str(row) for row in range(8)]


def test_who_lost_the_job_keeps_nothing(workers: WorkerFixture) -> None:
    workers.child(app=APPS)
    key = f"{workers.name}:k"
    job = workers.send("c.zombie", key)
    assert workers.hear(key) == "in"
    assert job.cancel()
    workers.go(key)
    assert workers.hear(key) == "Cancelled"
    assert workers.result("c.echo", 2) == 2


def test_steps_of_a_signed_job_are_kept_signed(workers: WorkerFixture) -> None:
    settings = Settings(url=workers.url, signing_keys={"k": "0123456789abcdef"})
    worker = workers.child(app=APPS, settings=settings)
    key = f"{workers.name}:k"
    with Queue(workers.name, settings=settings) as queue:
        job = queue.enqueue("c.order", key)
        assert [workers.hear(key), workers.hear(key)] == ["charged", "in"]
        reclaimed(workers, worker)
        workers.child(app=APPS, settings=settings)
        assert workers.hear(key) == "in"  # not charged again
        workers.go(key)
        assert job.result(PATIENCE)["charge"] == {"number": 7}


def test_forged_steps_of_a_signed_job_are_not_believed(workers: WorkerFixture) -> None:
    settings = Settings(url=workers.url, signing_keys={"k": "0123456789abcdef"})
    with Queue(workers.name, settings=settings) as queue:
        queue.pause()
        job = queue.enqueue("c.order", "key")
        jobs = queue.keys.jobs
        head, _, body = workers.redis.hget(jobs, job.id).partition(b";")
        forged = KeptSteps({"charge": {"number": 9999}}).text().encode()
        workers.redis.hset(jobs, job.id, b"%b|n%b;%b" % (head, forged, body))
        workers.child(app=APPS, settings=settings)
        queue.resume()
        with pytest.raises(JobFailed, match="kept steps") as failed:
            job.result(PATIENCE)
        assert failed.value.kind == "forged"
