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
    spread: ShardedQueue, server: EmbeddedRedis, private_server: EmbeddedRedis
) -> None:
    """Who knows an old table learns of it where the server does not answer."""
    name = spread.name
    with ShardedQueue(name, server.url) as other:
        assert spread.open(order=False) == 2
        assert len(fill(other, "before")) == 3
        with pytest.raises(ConfigError, match="answers: drain it"):
            spread.forget(1)
        private_server.stop()
        with pytest.raises(ConnectionLost):
            fill(other, "lost")
        with pytest.raises(ConnectionLost):
            spread.drain(1)
        assert spread.forget(1) == 1
        table = spread.table()
        assert (table.shards[1].state, table.moving) == ("gone", "")
        assert fill(other, "after") == {f"{name}~0", f"{name}~2"}
        assert (spread.counts()).ready > 0
        assert (spread.job("after-k3")).queue != f"{name}~1"
        with pytest.raises(ConfigError, match="no shard 1"):
            spread.forget(1)


def test_nobody_waits_for_a_shard_that_was_given_up(
    spread: ShardedQueue, private_server: EmbeddedRedis
) -> None:
    """It was being drained, or another one opened behind its jobs."""
    fill(spread, "before")
    spread.drain(1)
    fill(spread, "behind")
    (first, *_) = spread.queues()
    with first.consumer(jobs=100, renew=False) as consumer:
        assert consumer.pull() == []
        private_server.stop()
        spread.forget(1)
        assert len(consumer.pull()) > len(KEYS)


def test_another_change_goes_on_without_it(
    spread: ShardedQueue, private_server: EmbeddedRedis
) -> None:
    fill(spread, "before")
    assert spread.open() == 2
    fill(spread, "behind")
    private_server.stop()
    spread.forget(1)
    assert (spread.table()).moving == "open 2"
    first, opened = spread.queues()
    with first.consumer(jobs=100, renew=False) as consumer:
        jobs = consumer.pull()
        consumer.settle(ack=[job.id for job in jobs])
    table = spread.advance()
    assert not table.moving and (opened.counts()).ready > 0
    assert "fences" not in (opened.counts()).meta


def test_who_knows_an_old_table_of_a_shard_that_was_closed(
    spread: ShardedQueue, server: EmbeddedRedis, private_server: EmbeddedRedis
) -> None:
    """Its server was put to other use, as it may be."""
    with ShardedQueue(spread.name, server.url) as other:
        assert len(fill(other, "before")) == 2
        spread.drain(1)
        for its in spread.queues():
            its.cancel_all()
        table = spread.advance()
        assert table.shards[1].state == "closed"
        private_server.stop()
        assert fill(other, "after") == {f"{spread.name}~0"}
