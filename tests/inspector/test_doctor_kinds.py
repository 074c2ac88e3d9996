"""Damages of queues where consumers stand by, and of outboxes, are found and repaired."""

from collections.abc import Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def kinds(queue: Queue) -> list[str]:
    return [found.kind for found in Doctor(queue.redis, "rqueue").check_queue(queue.name)]


def healed(queue: Queue) -> list[str]:
    return [found.kind for found in Doctor(queue.redis, "rqueue").heal(queue.name)]


@pytest.mark.parametrize(
    ("ghost", "kind"), [(b"ghost", "not-live"), (b"", "nobody-live")], ids=["ghost", "none"]
)
def test_nobody_is_live(queue: Queue, ghost: bytes, kind: str) -> None:
    """RabbitMQ's queues stood still so, for ever: a renewal of any lease repairs it too."""
    queue.configure(live_consumers=1)
    with queue.consumer(renew=False) as live, queue.consumer(renew=False) as standby:
        assert kinds(queue) == []
        queue.redis.delete(queue.keys.live)
        if ghost:
            queue.redis.sadd(queue.keys.live, ghost)
        assert kinds(queue) == [kind]
        assert healed(queue) == []
        assert queue.redis.smembers(queue.keys.live) == {live.name.encode()}
        assert queue.redis.zrange(queue.keys.standbys, 0, -1) == [standby.name.encode()]


def test_an_outbox_and_its_jobs_agree(queue: Queue) -> None:
    target = queue.at(queue.name + "/dead")
    target.configure(max_deliveries=3)
    queue.configure(dead_to=target.name)
    with queue.consumer(jobs=3, renew=False) as consumer:
        for _ in range(3):
            queue.send("t", [], None)
        jobs = consumer.pull()
        call = commands.settle(
            queue.keys,
            consumer.name,
            consumer._state.term,
            None,
            reject=[(job.id, b"{}") for job in jobs],
        )
        execute(queue.redis, call)
    assert kinds(queue) == []
    first, second, _ = queue.redis.zrange(queue.keys.outgoing, 0, -1)
    queue.redis.zrem(queue.keys.outgoing, first)
    assert kinds(queue) == ["unsent"] and healed(queue) == []
    queue.redis.hdel(queue.keys.outgoing_jobs, second)
    assert kinds(queue) == ["no-letter"] and healed(queue) == []
    assert queue.forward() == 2 and target.counts().ready == 2
    assert kinds(queue) == []
