# Generated from tests/client/_async/test_sharded_queue.py (`make generate`): do not edit.
"""One queue that is spread over several."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueSharded, ShardsChanged, ShardsMoving
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options


def keyed(number: int) -> Options:
    return Options(key=f"k{number}")


def test_jobs_with_keys_go_where_their_keys_are(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=4) as queue:
        for round_ in range(3):
            for number in range(20):
                queue.send("t", [round_], options=keyed(number))
        counts = [its.ready for its in [one.counts() for one in queue.queues()]]
        assert sum(counts) == 60 == (queue.counts()).ready and min(counts) > 0
        assert all(count % 3 == 0 for count in counts)
        many = queue.enqueue_many([Call("t", [1], None, keyed(n)) for n in range(20)])
        assert len({handle.id for handle in many}) == 20
        counts = [its.ready for its in [one.counts() for one in queue.queues()]]
        assert all(count % 4 == 0 for count in counts)


def test_a_queue_of_that_name_knows_its_shards(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    """Who enqueues by name need not know that it is spread."""
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        handle = queue.send("t", options=Options(id="a"))
        assert handle.created and not (queue.send("t", options=Options(id="a"))).created
        assert len(queue.enqueue_many([Call("t") for _ in range(9)])) == 9
        assert (sharded.counts()).ready == 10
        assert ((sharded.job("a")).state()).value == "ready"
        assert sharded.cancel("a")
        assert len([job for job in sharded.browse()]) == 9
        consumer = queue.consumer()
        with pytest.raises(QueueSharded):
            consumer.register()
        consumer.close()
        with pytest.raises(ShardsChanged, match=f"a shard of queue '{queue_name}'"):
            queue.at(f"{queue_name}~0").send("t")


def test_a_shard_that_opens_waits_for_what_came_before(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with (
        ShardedQueue(queue_name, server.url, shards=1) as one,
        ShardedQueue(queue_name, server.url) as other,
    ):
        for number in range(8):
            one.send("t", [0], options=keyed(number))
            other.send("t", [1], options=keyed(number))
        assert one.open() == 1
        with pytest.raises(ShardsMoving):
            one.open()
        for number in range(8):
            other.send("t", [2], options=keyed(number))
        first, second = one.queues()
        assert (first.counts()).ready + (second.counts()).ready == 24
        consumer, later = first.consumer(jobs=100, renew=False), second.consumer(jobs=100)
        with consumer, later:
            assert later.pull() == []
            jobs = consumer.pull()
            consumer.settle(ack=[job.id for job in jobs if job.header.position <= 15])
            assert (one.advance()).moving
            consumer.settle(ack=[job.id for job in jobs if job.header.position > 15])
            assert not (one.advance()).moving
            assert len(later.pull()) == (second.counts()).held > 0


def test_a_shard_is_drained(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=3) as queue:
        queue.configure(max_deliveries=3)
        for number in range(9):
            queue.send("t", options=keyed(number))
        queue.drain(1)
        for number in range(9):
            queue.send("t", options=keyed(number))
        _, drained, _ = queue.queues()
        with drained.consumer(jobs=100) as consumer:
            jobs = consumer.pull()
            assert 0 < len(jobs) < 9
            consumer.settle(ack=[job.id for job in jobs])
        table = queue.advance()
        assert (table.moving, table.shards[1].state) == ("", "closed")
        assert [one.name for one in queue.queues()] == [
            f"{queue_name}~0",
            f"{queue_name}~2",
        ]
        assert queue.open(1) == 1
        with pytest.raises(ConfigError, match="is open"):
            queue.open(1)


def test_a_queue_with_jobs_gets_no_shards(queue: Queue, server: EmbeddedRedis) -> None:
    queue.send("t")
    with ShardedQueue(queue.name, server.url, shards=2) as sharded:
        with pytest.raises(ConfigError, match="shards"):
            sharded.table()
    with ShardedQueue(f"{queue.name}-x", server.url) as unknown:
        with pytest.raises(ConfigError, match="say how many"):
            unknown.send("t")
