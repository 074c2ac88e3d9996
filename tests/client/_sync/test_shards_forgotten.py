# Generated from tests/client/_async/test_shards_forgotten.py (`make generate`): do not edit.
"""Shards whose servers are gone, for a while and for good."""

import pytest

from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, ConnectionLost
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options

KEYS = [f"k{number}" for number in range(12)]


def fill(queue: ShardedQueue, said: str) -> set[str]:
    """A job of each key, alone and in a batch; the shards that they came to."""
    alone = [queue.send("t", [said], options=Options(key=key)) for key in KEYS]
    calls = [Call("t", [said], None, Options(key=key, id=f"{said}-{key}")) for key in KEYS]
    return {handle.queue for handle in [*alone, *queue.enqueue_many(calls)]}


def test_a_shard_whose_server_is_gone_for_good_is_given_up(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """Who knows an old table learns of it where the server does not answer."""
    with (
        ShardedQueue(queue_name, server.url, shards=2) as queue,
        ShardedQueue(queue_name, server.url) as other,
    ):
        queue.table()
        assert queue.open(place=private_server.url, order=False) == 2
        assert len(fill(other, "before")) == 3
        with pytest.raises(ConfigError, match="answers: drain it"):
            queue.forget(2)
        private_server.stop()
        with pytest.raises(ConnectionLost):
            fill(other, "lost")
        with pytest.raises(ConnectionLost):
            queue.drain(2)
        assert queue.forget(2) == 2
        table = queue.table()
        assert (table.shards[2].state, table.moving) == ("gone", "")
        assert fill(other, "after") == {f"{queue_name}~0", f"{queue_name}~1"}
        assert (queue.counts()).ready > 0
        assert (queue.job("after-k3")).queue != f"{queue_name}~2"
        with pytest.raises(ConfigError, match="no shard 2"):
            queue.forget(2)


def test_nobody_waits_for_a_shard_that_was_given_up(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """It was being drained, or another one opened behind its jobs."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        queue.open(place=private_server.url, order=False)
        fill(queue, "before")
        queue.drain(1)
        fill(queue, "behind")
        (first, *_) = queue.queues()
        with first.consumer(jobs=100, renew=False) as consumer:
            assert consumer.pull() == []
            private_server.stop()
            queue.forget(1)
            assert len(consumer.pull()) > len(KEYS)


def test_another_change_goes_on_without_it(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        queue.open(place=private_server.url, order=False)
        fill(queue, "before")
        assert queue.open() == 2
        fill(queue, "behind")
        private_server.stop()
        queue.forget(1)
        assert (queue.table()).moving == "open 2"
        first, opened = queue.queues()
        with first.consumer(jobs=100, renew=False) as consumer:
            jobs = consumer.pull()
            consumer.settle(ack=[job.id for job in jobs])
        table = queue.advance()
        assert not table.moving and (opened.counts()).ready > 0
        assert "fences" not in (opened.counts()).meta


def test_who_knows_an_old_table_of_a_shard_that_was_closed(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """Its server was put to other use, as it may be."""
    with (
        ShardedQueue(queue_name, server.url, shards=1) as queue,
        ShardedQueue(queue_name, server.url) as other,
    ):
        queue.table()
        queue.open(place=private_server.url, order=False)
        assert len(fill(other, "before")) == 2
        queue.drain(1)
        for its in queue.queues():
            its.cancel_all()
        table = queue.advance()
        assert table.shards[1].state == "closed"
        private_server.stop()
        assert fill(other, "after") == {f"{queue_name}~0"}
