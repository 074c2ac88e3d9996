"""Something else overwrites a key of one queue: the pool says so, leaves that queue alone, serves
the others, and works there again once it is repaired."""

from collections.abc import Callable, Iterator

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import QueueDamaged
from rqueue.inspector import Doctor
from rqueue.protocol.commands import Put
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually, go, pop, started

MakePool = Callable[..., Pool]
LEFT_ALONE = "leaves a queue alone"


@pytest.fixture
def other(server: EmbeddedRedis, queue: Queue) -> Iterator[Queue]:
    with Queue(f"{queue.name}-other", server.url) as made:
        yield made


def consumer_of(queue: Queue) -> str:
    (name,) = queue.redis.zrange(queue.keys.consumers, 0, -1)
    return str(name.decode())


def overwrite(queue: Queue, key: str) -> str:
    """Damage a key; its name."""
    if key.endswith(":"):
        key += consumer_of(queue)
    name = queue.keys.base + key
    queue.redis.set(name, "another application's")
    return name


def repair(queue: Queue) -> None:
    left = Doctor(queue.redis, "rqueue", wait=lambda _seconds: None).heal(queue.name)
    assert [finding for finding in left if finding.kind == "wrong-type"] == []


def named_once(pool: Pool, name: str) -> None:
    """Each process names the key at most once, and none shows a traceback."""
    errors = [line for line in pool.log.splitlines() if name in line and " ERROR " in line]
    assert 1 <= len(errors) <= 2, pool.log  # the worker, and its supervisor
    assert "Traceback" not in pool.log, pool.log


@pytest.mark.parametrize(
    "key", ["scheduled", "jobs", "ready:4", "history", "wake:", "held:", "consumer:", "meta"]
)
def test_the_other_queues_go_on(
    queue: Queue, other: Queue, client: redis.Redis, make_pool: MakePool, key: str
) -> None:
    pool = make_pool(queues=[queue.name, other.name])
    held = queue.enqueue("hold", queue.name)
    started(client, queue.name)
    name = overwrite(queue, key)
    go(client, queue.name, "done")
    for number in range(3):
        other.enqueue("note", other.name, str(number))
        assert pop(client, other.name) == str(number)
    pool.said(LEFT_ALONE)
    other.enqueue("note", other.name, "still")
    assert pop(client, other.name) == "still"
    named_once(pool, name)
    repair(queue)
    pool.said("works again")
    if key != "jobs":  # where they are gone, the job's outcome has no job any more
        go(client, queue.name, "again")  # it may have to run again
        assert held.result(PATIENCE) in ("done", "again")
    queue.enqueue("note", queue.name, "back")
    eventually(lambda: b"back" in client.lrange(queue.name, 0, -1), lambda: pool.log)
    other.enqueue("note", other.name, "too")
    assert pop(client, other.name) == "too"
    assert pool.drained() == Exit.OK, pool.log
    named_once(pool, name)
    assert "crash" not in pool.log


def test_a_pool_that_starts_on_a_damaged_queue_serves_the_others(
    queue: Queue, other: Queue, client: redis.Redis, make_pool: MakePool
) -> None:
    queue.enqueue("note", queue.name, "waits")
    name = overwrite(queue, "scheduled")
    with pytest.raises(QueueDamaged) as caught:
        queue.enqueue_puts([Put("later", b'["note"]', delay_ms=60_000)])
    assert caught.value.key == name
    pool = make_pool(queues=[queue.name, other.name])
    other.enqueue("note", other.name, "served")
    assert pop(client, other.name) == "served"
    named_once(pool, name)
    repair(queue)
    assert pop(client, queue.name) == "waits"
    assert pool.drained() == Exit.OK


def test_a_pool_without_a_sound_queue_waits_for_one(
    queue: Queue, client: redis.Redis, make_pool: MakePool
) -> None:
    job = queue.enqueue("note", queue.name, "waits")
    name = overwrite(queue, "interested")
    pool = make_pool()
    pool.said(LEFT_ALONE)
    repair(queue)
    assert pop(client, queue.name) == "waits"
    job.result(PATIENCE)
    named_once(pool, name)
    overwrite(queue, "interested")
    assert pool.drained() == Exit.OK
    assert "Traceback" not in pool.log
