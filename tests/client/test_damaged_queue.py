"""A key of a queue that something else has overwritten is named by the error of every step."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import QueueDamaged
from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put
from rqueue.transport.redis_client import execute

pytestmark = pytest.mark.each_server

PUT = [Put("j1", b'["t"]')]


@pytest.fixture
def client(server: EmbeddedRedis) -> Any:
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Any:
    with Queue(queue_name, server.url) as queue:
        yield queue


def check(error: QueueDamaged, queue: Queue, key: str, expected: str) -> None:
    assert (error.queue, error.key) == (queue.name, queue.keys.base + key)
    assert (error.found, error.expected) == ("string", expected)
    for words in (error.key, "is a string", f"keeps a {expected}", f"doctor {queue.name} --repair"):
        assert words in str(error)


@pytest.mark.parametrize(("key", "expected"), [("jobs", "hash"), ("ended", "hash")])
def test_an_enqueue(queue: Queue, server: EmbeddedRedis, key: str, expected: str) -> None:
    queue.redis.set(queue.keys.base + key, "x")
    with pytest.raises(QueueDamaged) as caught:
        queue.enqueue_puts(PUT)
    check(caught.value, queue, key, expected)

    async def main() -> None:
        async with AsyncQueue(queue.name, server.url) as same:
            await same.enqueue_puts(PUT)

    with pytest.raises(QueueDamaged) as caught:
        asyncio.run(main())
    check(caught.value, queue, key, expected)


def test_a_step_that_looks_first_has_changed_nothing(queue: Queue) -> None:
    queue.redis.set(queue.keys.dead, "x")
    with pytest.raises(QueueDamaged) as caught:
        queue.pause()
    check(caught.value, queue, "dead", "zset")


def test_a_key_of_one_consumer(queue: Queue) -> None:
    with queue.consumer(name="c", jobs=5, renew=False) as consumer:
        queue.enqueue_puts(PUT)
        (job,) = consumer.pull()
        kept = queue.redis.dump(queue.keys.held("c"))
        queue.redis.set(queue.keys.held("c"), "x")
        steps: list[Callable[[], Any]] = [consumer.pull, lambda: consumer.ack(job)]
        for step in steps:
            with pytest.raises(QueueDamaged) as caught:
                step()
            check(caught.value, queue, "held:c", "list")
        queue.redis.restore(queue.keys.held("c"), 0, kept, replace=True)


def test_the_log_of_a_writer(queue: Queue, client: redis.Redis) -> None:
    client.rpush(queue.keys.written("run", 1, 0), "x")
    note = Note("run", 1, 0, 0, 60_000, b"12345678")
    with pytest.raises(QueueDamaged) as caught:
        execute(client, commands.enqueue_alike(queue.keys, ["j1", b'["t"]'], note=note))
    assert caught.value.key == queue.keys.written("run", 1, 0)


def test_a_wait_for_a_result(queue: Queue) -> None:
    handle = queue.send("t")
    with queue.consumer(jobs=5, renew=False) as consumer:
        consumer.settle(done=[(consumer.pull()[0], 7)])
    queue.redis.set(queue.keys.result(handle.id), "x")
    with pytest.raises(QueueDamaged) as caught:
        handle.result()
    check(caught.value, queue, f"result:{handle.id}", "list")


def types_asked(queue: Queue) -> int:
    calls: int = queue.redis.info("commandstats").get("cmdstat_type", {"calls": 0})["calls"]
    return calls


def test_a_success_asks_for_no_types(queue: Queue) -> None:
    """But for one that begins a generation of records, the first and the one after each `keep_ms`:
    that cannot be taken back, so it looks at what it is to write (jobs, ended, history)."""
    queue.enqueue_puts([Put(f"j{number}", b'["t"]') for number in range(9)])
    with queue.consumer(jobs=2, renew=False) as consumer:
        jobs = consumer.pull()
        for number, asks in enumerate((3, 0, 0, 3, 0)):
            if number == 3:
                queue.redis.hincrby(queue.keys.meta, "ended_since", -3_600_000_000)
            before = types_asked(queue)
            queue.enqueue_puts([Put(f"k{number}", b'["t"]')])
            consumer.ack(jobs.pop(0))
            jobs += consumer.pull()
            assert types_asked(queue) - before == asks
