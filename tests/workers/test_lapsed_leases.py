"""A lease that ends although its worker lives costs its jobs nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable

import redis

from rqueue.client._sync.queue import Queue
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, Watched, causes, eventually, go, header, noted, started
from tests.workers.test_poison import rows

MakePool = Callable[..., Pool]


def somebody_takes_back(queue: Queue) -> None:
    """What another pool does, whose renewal comes first after an outage."""
    eventually(lambda: execute(queue.redis, commands.renew(queue.keys, 1000, [])).reclaimed > 0)


def lease_left(queue: Queue) -> float:
    """Milliseconds that the one consumer's lease goes on; less than 0: it has ended."""
    ((_, until),) = queue.redis.zrange(queue.keys.consumers, 0, -1, withscores=True)
    seconds, micros = queue.redis.time()
    return float(until) - seconds * 1000 - micros / 1000


def test_an_outage_longer_than_a_lease_makes_no_job_run_twice(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Nobody else takes the job meanwhile: its own pool is the first one back."""
    job = queue.send("hold", [queue_name])
    pool = make_pool(lease="1s")
    started(client, queue_name)
    pool.send(signal.SIGSTOP)
    eventually(lambda: lease_left(queue) < 0)
    pool.send(signal.SIGCONT)
    eventually(lambda: lease_left(queue) > 0)
    go(client, queue_name)
    assert job.result(PATIENCE) == "done"
    assert pool.drained() == Exit.OK
    assert (len(rows(queue, "ack")), rows(queue, "crash")) == (1, [])
    assert client.llen(f"{queue_name}:started") == 0


def test_outages_that_end_leases_make_no_dead_letters(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """X-24: four times the supervisor cannot renew for longer than a lease, and others take the job
    of its worker for one that crashed it; then the supervisor is back."""
    job = queue.send("hold", [queue_name])
    pool = make_pool(lease="1s")
    for _ in range(4):
        worker = started(client, queue_name)
        noted(queue, job.id)
        pool.send(signal.SIGSTOP)
        somebody_takes_back(queue)
        assert header(queue, job.id).crashes == 1
        assert causes(queue, job.id) == [("crash", "LeaseEnded")]
        pool.send(signal.SIGCONT)
        eventually(lambda: header(queue, job.id).crashes == 0, lambda: pool.log)
        assert (header(queue, job.id).attempts, causes(queue, job.id)) == (0, [])
        go(client, queue_name)  # it ends, and that is refused
        pool.said("came too late")
    assert len(rows(queue, "crash")) == 4
    # the pool and its host die, and nobody comes back
    worker = Watched(started(client, queue_name))
    noted(queue, job.id)
    worker.kill(signal.SIGSTOP)
    pool.send(signal.SIGKILL)
    pool.ended()
    worker.kill()
    other = make_pool(lease="1s")
    started(client, queue_name)
    assert header(queue, job.id).crashes == 1
    go(client, queue_name)
    assert job.result(PATIENCE) == "done"
    assert job.state() is JobState.DONE
    assert other.drained() == Exit.OK
