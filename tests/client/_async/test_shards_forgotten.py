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
    spread: AsyncShardedQueue, server: EmbeddedRedis, private_server: EmbeddedRedis
) -> None:
    """Who knows an old table learns of it where the server does not answer."""
    name = spread.name
    async with AsyncShardedQueue(name, server.url) as other:
        assert await spread.open(order=False) == 2
        assert len(await fill(other, "before")) == 3
        with pytest.raises(ConfigError, match="answers: drain it"):
            await spread.forget(1)
        private_server.stop()
        with pytest.raises(ConnectionLost):
            await fill(other, "lost")
        with pytest.raises(ConnectionLost):
            await spread.drain(1)
        assert await spread.forget(1) == 1
        table = await spread.table()
        assert (table.shards[1].state, table.moving) == ("gone", "")
        assert await fill(other, "after") == {f"{name}~0", f"{name}~2"}
        assert (await spread.counts()).ready > 0
        assert (await spread.job("after-k3")).queue != f"{name}~1"
        with pytest.raises(ConfigError, match="no shard 1"):
            await spread.forget(1)


async def test_nobody_waits_for_a_shard_that_was_given_up(
    spread: AsyncShardedQueue, private_server: EmbeddedRedis
) -> None:
    """It was being drained, or another one opened behind its jobs."""
    await fill(spread, "before")
    await spread.drain(1)
    await fill(spread, "behind")
    (first, *_) = await spread.queues()
    async with first.consumer(jobs=100, renew=False) as consumer:
        assert await consumer.pull() == []
        private_server.stop()
        await spread.forget(1)
        assert len(await consumer.pull()) > len(KEYS)


async def test_another_change_goes_on_without_it(
    spread: AsyncShardedQueue, private_server: EmbeddedRedis
) -> None:
    await fill(spread, "before")
    assert await spread.open() == 2
    await fill(spread, "behind")
    private_server.stop()
    await spread.forget(1)
    assert (await spread.table()).moving == "open 2"
    first, opened = await spread.queues()
    async with first.consumer(jobs=100, renew=False) as consumer:
        jobs = await consumer.pull()
        await consumer.settle(ack=[job.id for job in jobs])
    table = await spread.advance()
    assert not table.moving and (await opened.counts()).ready > 0
    assert "fences" not in (await opened.counts()).meta


async def test_who_knows_an_old_table_of_a_shard_that_was_closed(
    spread: AsyncShardedQueue, server: EmbeddedRedis, private_server: EmbeddedRedis
) -> None:
    """Its server was put to other use, as it may be."""
    async with AsyncShardedQueue(spread.name, server.url) as other:
        assert len(await fill(other, "before")) == 2
        await spread.drain(1)
        for its in await spread.queues():
            await its.cancel_all()
        table = await spread.advance()
        assert table.shards[1].state == "closed"
        private_server.stop()
        assert await fill(other, "after") == {f"{spread.name}~0"}
