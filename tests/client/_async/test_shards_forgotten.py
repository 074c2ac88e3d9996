"""Shards whose servers are gone, for a while and for good."""

import pytest

from rqueue.client._async.sharded_queue import AsyncShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, ConnectionLost
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options

KEYS = [f"k{number}" for number in range(12)]


async def fill(queue: AsyncShardedQueue, said: str) -> set[str]:
    """A job of each key, alone and in a batch; the shards that they came to."""
    alone = [await queue.send("t", [said], options=Options(key=key)) for key in KEYS]
    calls = [Call("t", [said], None, Options(key=key, id=f"{said}-{key}")) for key in KEYS]
    return {handle.queue for handle in [*alone, *await queue.enqueue_many(calls)]}


async def test_a_shard_whose_server_is_gone_for_good_is_given_up(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """Who knows an old table learns of it where the server does not answer."""
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=2) as queue,
        AsyncShardedQueue(queue_name, server.url) as other,
    ):
        await queue.table()
        assert await queue.open(place=private_server.url, order=False) == 2
        assert len(await fill(other, "before")) == 3
        with pytest.raises(ConfigError, match="answers: drain it"):
            await queue.forget(2)
        private_server.stop()
        with pytest.raises(ConnectionLost):
            await fill(other, "lost")
        with pytest.raises(ConnectionLost):
            await queue.drain(2)
        assert await queue.forget(2) == 2
        table = await queue.table()
        assert (table.shards[2].state, table.moving) == ("gone", "")
        assert await fill(other, "after") == {f"{queue_name}~0", f"{queue_name}~1"}
        assert (await queue.counts()).ready > 0
        assert (await queue.job("after-k3")).queue != f"{queue_name}~2"
        with pytest.raises(ConfigError, match="no shard 2"):
            await queue.forget(2)


async def test_nobody_waits_for_a_shard_that_was_given_up(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """It was being drained, or another one opened behind its jobs."""
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        await queue.table()
        await queue.open(place=private_server.url, order=False)
        await fill(queue, "before")
        await queue.drain(1)
        await fill(queue, "behind")
        (first, *_) = await queue.queues()
        async with first.consumer(jobs=100, renew=False) as consumer:
            assert await consumer.pull() == []
            private_server.stop()
            await queue.forget(1)
            assert len(await consumer.pull()) > len(KEYS)


async def test_another_change_goes_on_without_it(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        await queue.table()
        await queue.open(place=private_server.url, order=False)
        await fill(queue, "before")
        assert await queue.open() == 2
        await fill(queue, "behind")
        private_server.stop()
        await queue.forget(1)
        assert (await queue.table()).moving == "open 2"
        first, opened = await queue.queues()
        async with first.consumer(jobs=100, renew=False) as consumer:
            jobs = await consumer.pull()
            await consumer.settle(ack=[job.id for job in jobs])
        table = await queue.advance()
        assert not table.moving and (await opened.counts()).ready > 0
        assert "fences" not in (await opened.counts()).meta


async def test_who_knows_an_old_table_of_a_shard_that_was_closed(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """Its server was put to other use, as it may be."""
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=1) as queue,
        AsyncShardedQueue(queue_name, server.url) as other,
    ):
        await queue.table()
        await queue.open(place=private_server.url, order=False)
        assert len(await fill(other, "before")) == 2
        await queue.drain(1)
        for its in await queue.queues():
            await its.cancel_all()
        table = await queue.advance()
        assert table.shards[1].state == "closed"
        private_server.stop()
        assert await fill(other, "after") == {f"{queue_name}~0"}
