"""Before a job begins its worker knows that it holds the job still, and that the job is neither
cancelled nor expired: also if the process was frozen, or its connection stalled."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.workers.pools import Pool, eventually, go, header, started
from tests.workers.test_poison import rows

MakePool = Callable[..., Pool]

APP = "tests.workers.begins_app"
ONE = {"main": {}, "threads": {"threads": 1}, "loop": {"async_slots": 1}}
"""Pools by their executor, which runs one job at a time."""
TASK = {"main": "sync", "threads": "sync", "loop": "loop"}
executors = pytest.mark.parametrize("executor", ONE)


def pool_of(make_pool: MakePool, executor: str, url: str = "", **options: Any) -> Pool:
    return make_pool(url, app=[APP], lease="1s", **ONE[executor], **options)


def idle(queue: Queue) -> str:
    """Wait until the one consumer waits for work; its name."""
    interested: list[bytes] = []

    def waits() -> bool:
        interested[:] = queue.redis.zrange(queue.keys.interested, 0, -1)
        return bool(interested)

    eventually(waits)
    (name,) = interested
    return name.decode()


def freeze(pool: Pool) -> psutil.Process:
    """Freeze the pool's one worker, as SIGSTOP does."""
    (worker,) = psutil.Process(pool.pid).children()
    worker.send_signal(signal.SIGSTOP)
    eventually(lambda: worker.status() == psutil.STATUS_STOPPED)
    return worker


def held(queue: Queue, consumer: str) -> int:
    return int(queue.redis.llen(queue.keys.held(consumer)))


def now_ms(queue: Queue) -> int:
    """Redis's clock."""
    seconds, micros = queue.redis.time()
    return int(seconds * 1000 + micros / 1000)


def joined_again(queue: Queue, consumer: str) -> bool:
    """Whether the worker of a consumer has noticed that its lease ended."""
    names = [name.decode() for name in queue.redis.zrange(queue.keys.consumers, 0, -1)]
    base = consumer.rpartition(".")[0]
    return consumer not in names and any(name.startswith(base) for name in names)


@executors
def test_who_was_frozen_begins_nothing_that_others_have_done(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, executor: str
) -> None:
    slow = pool_of(make_pool, executor)
    consumer = idle(queue)
    worker = freeze(slow)
    job = queue.send(TASK[executor], [queue_name, "once"])
    assert held(queue, consumer) == 1
    other = pool_of(make_pool, executor)
    assert job.result(PATIENCE) == "once"
    worker.send_signal(signal.SIGCONT)
    eventually(lambda: joined_again(queue, consumer))
    assert (slow.drained(), other.drained()) == (Exit.OK, Exit.OK)
    assert client.lrange(queue_name, 0, -1) == [b"once"]
    assert len(rows(queue, "ack")) == 1


def test_a_step_that_was_kept_elsewhere_is_not_done_again(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    slow = pool_of(make_pool, "main")
    consumer = idle(queue)
    worker = freeze(slow)
    job = queue.send("steps", [queue_name, "once"])
    other = pool_of(make_pool, "main")
    job.result(PATIENCE)
    worker.send_signal(signal.SIGCONT)
    eventually(lambda: joined_again(queue, consumer))
    assert (slow.drained(), other.drained()) == (Exit.OK, Exit.OK)
    assert client.lrange(queue_name, 0, -1) == [b"once"]


@executors
def test_who_was_behind_a_stalled_connection_begins_nothing_that_others_have_done(
    server: EmbeddedRedis,
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    executor: str,
) -> None:
    with Proxy(server.url.removeprefix("unix://")) as proxy:
        slow = pool_of(make_pool, executor, proxy.url, tell=server.url)
        consumer = idle(queue)
        proxy.hold(requests=True)
        job = queue.send(TASK[executor], [queue_name, "once"])
        assert held(queue, consumer) == 1
        other = pool_of(make_pool, executor)
        assert job.result(PATIENCE) == "once"
        proxy.release()
        eventually(lambda: joined_again(queue, consumer))
        assert (slow.drained(), other.drained()) == (Exit.OK, Exit.OK)
    assert client.lrange(queue_name, 0, -1) == [b"once"]


@pytest.mark.parametrize(("executor", "task"), [*TASK.items(), ("main", "early")])
def test_a_job_that_is_cancelled_while_its_worker_is_frozen_never_begins(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    executor: str,
    task: str,
) -> None:
    """The freeze is shorter than the lease."""
    pool = make_pool(app=[APP], **ONE[executor])
    consumer = idle(queue)
    worker = freeze(pool)
    job = queue.send(task, [queue_name, "never"])
    assert held(queue, consumer) == 1
    assert job.cancel(running=True)
    eventually(lambda: "is stopped by" in pool.log)
    worker.send_signal(signal.SIGCONT)
    queue.send(TASK[executor], [queue_name, "after"]).result(PATIENCE)
    assert pool.drained() == Exit.OK
    assert client.lrange(queue_name, 0, -1) == [b"after"]
    assert job.state() is JobState.CANCELLED
    assert (len(rows(queue, "cancelled")), len(rows(queue, "ack"))) == (1, 1)


def hold_with_others(
    queue: Queue, client: redis.Redis, queue_name: str, executor: str, **options: Any
) -> list[Any]:
    """A job runs until `go`, and three wait behind it in its worker."""
    long, hold = ("long_loop", "hold_loop") if executor == "loop" else ("long", "hold")
    # three times as long as jobs take the others are kept
    queue.send(long, [1.0]).result(PATIENCE)
    consumer = idle(queue)
    queue.pause()
    queue.send(hold, [queue_name])
    said = Options(**options)
    behind = [queue.send(TASK[executor], [queue_name, f"never {i}"], None, said) for i in range(3)]
    queue.resume()
    started(client, queue_name)
    assert held(queue, consumer) == 4
    return behind


@executors
def test_jobs_that_are_cancelled_while_they_are_held_never_begin(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, executor: str
) -> None:
    pool = make_pool(app=[APP], prefetch=8, **ONE[executor])
    behind = hold_with_others(queue, client, queue_name, executor)
    come = now_ms(queue)
    for job in behind:
        assert job.cancel(running=True)
    eventually(lambda: now_ms(queue) > come + 300)
    go(client, queue_name)
    queue.send(TASK[executor], [queue_name, "after"]).result(PATIENCE)
    assert pool.drained() == Exit.OK
    assert client.lrange(queue_name, 0, -1) == [b"after"]
    assert {job.state() for job in behind} == {JobState.CANCELLED}
    assert len(rows(queue, "cancelled")) == 3


@executors
def test_jobs_that_expire_while_they_are_held_never_begin(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, executor: str
) -> None:
    pool = make_pool(app=[APP], prefetch=8, **ONE[executor])
    behind = hold_with_others(queue, client, queue_name, executor, ttl=0.5)
    last = header(queue, behind[-1].id).expires_ms
    eventually(lambda: now_ms(queue) > last)
    go(client, queue_name)
    queue.send(TASK[executor], [queue_name, "after"]).result(PATIENCE)
    eventually(lambda: len(rows(queue, "expired")) == 3)
    assert pool.drained() == Exit.OK
    assert client.lrange(queue_name, 0, -1) == [b"after"]
    assert {job.state() for job in behind} == {JobState.EXPIRED}


def test_a_job_expires_while_its_process_is_busy_with_another_queue(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """A process holds one job of each of its queues."""
    with Queue(f"{queue_name}-b", redis=client) as second:
        pool = make_pool(app=[APP], queues=[queue_name, second.name])
        queue.send("long", [1.0]).result(PATIENCE)
        eventually(lambda: len(client.zrange(second.keys.interested, 0, -1)) == 1)
        queue.send("hold", [queue_name])
        started(client, queue_name)
        job = second.send("sync", [queue_name, "never"], None, Options(ttl=0.3))
        last = header(second, job.id).expires_ms
        eventually(lambda: now_ms(second) > last)
        go(client, queue_name)
        eventually(lambda: job.state() is JobState.EXPIRED and len(rows(second, "expired")) == 1)
        assert pool.drained() == Exit.OK
    assert client.llen(queue_name) == 0
