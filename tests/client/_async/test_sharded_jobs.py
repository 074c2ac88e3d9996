"""Jobs of a queue that is spread over shards, by their ids."""

from functools import partial

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.sharded_queue import AsyncShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    ConfigError,
    ConnectionLost,
    QueueInUse,
    QueueSharded,
    ResultNotReady,
    UnknownJob,
)
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE


async def test_a_job_is_found_by_its_id(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    """By name, as in any queue, wherever its key has put it."""
    async with AsyncShardedQueue(queue_name, server.url, shards=3) as sharded:
        ids = [f"job-{number}" for number in range(9)]
        for number, id_ in enumerate(ids):
            await sharded.send("t", [number], options=Options(id=id_, key=f"k{number}"))
        for id_ in ids:
            handle = queue.job(id_)
            assert await handle.state() is JobState.READY
            assert handle.queue == (await sharded.job(id_)).queue
            with pytest.raises(ResultNotReady):
                await queue.job(id_).result(0)
        for its in await sharded.queues():
            async with its.consumer(jobs=100, renew=False) as consumer:
                jobs = await consumer.pull()
                await consumer.settle(done=[(job, its.envelope(job).args[0]) for job in jobs])
        assert [await queue.job(id_).result(PATIENCE) for id_ in ids] == list(range(9))
        assert [state async for state in queue.job(ids[4]).states(PATIENCE)] == [JobState.DONE]
        assert [seen.state async for seen in queue.job(ids[5]).watch(PATIENCE)] == [JobState.DONE]


async def test_a_job_is_cancelled_by_its_id(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=3) as sharded:
        for number in range(6):
            await sharded.send("t", options=Options(id=f"job-{number}", key=f"k{number}"))
        assert await queue.cancel("job-0") and await queue.job("job-1").cancel()
        assert not await queue.cancel("job-0") and not await queue.cancel("nobody")
        assert await queue.job("job-1").state() is JobState.CANCELLED
        assert (await sharded.counts()).ready == 4


async def test_a_job_that_nobody_knows(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as sharded:
        await sharded.table()
        assert await queue.job("nobody").state() is JobState.UNKNOWN
        with pytest.raises(UnknownJob):
            await queue.job("nobody").result(PATIENCE)
        with pytest.raises(UnknownJob):
            assert [state async for state in queue.job("nobody").states(PATIENCE)]


async def test_a_job_of_a_shard_that_has_opened_since(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    """The client knows an old table."""
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as sharded:
        await sharded.send("t", options=Options(id="old"))
        assert await queue.job("old").state() is JobState.READY
        await sharded.open(order=False)
        for number in range(8):
            await sharded.send("t", options=Options(id=f"new-{number}"))
        places = {(await sharded.job(f"new-{number}")).queue for number in range(8)}
        assert len(places) == 2
        for number in range(8):
            assert await queue.job(f"new-{number}").state() is JobState.READY


async def test_a_shard_that_is_away_is_no_proof_that_a_job_is_unknown(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as sharded:
        await sharded.table()
        await sharded.open(place=private_server.url, order=False)
        ids = [f"job-{number}" for number in range(12)]
        handles = [await sharded.send("t", options=Options(id=id_)) for id_ in ids]
        near = [handle.id for handle in handles if handle.queue == f"{queue_name}~0"]
        gone = [handle.id for handle in handles if handle.queue == f"{queue_name}~1"]
        private_server.stop()
        for id_ in near:
            assert await queue.job(id_).state() is JobState.READY
        with pytest.raises(ConnectionLost):
            await queue.job(gone[0]).state()
        with pytest.raises(ConnectionLost):
            await queue.job(gone[0]).result(0)


async def test_what_is_done_with_one_queue_is_refused(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    """Nothing is done with the name alone, as if that had shards."""
    other = f"{queue_name}-other"
    await queue.at(other).configure()
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as sharded:
        await sharded.send("t", options=Options(id="a"))
        for call in (
            queue.pause,
            queue.resume,
            queue.cancel_all,
            partial(queue.promote, "a"),
            partial(queue.set_priority, "a", 9),
            partial(queue.expire, "a"),
            partial(queue.reject, "a"),
            partial(queue.unique.owner, "x"),
            queue.counts,
            partial(queue.move, other, "a"),
            partial(queue.move_all, other),
            partial(queue.at(other).move_all, queue_name),
        ):
            with pytest.raises(QueueSharded, match=f"ShardedQueue\\('{queue_name}'\\)"):
                await call()
        with pytest.raises(QueueSharded):
            async for _ in queue.alerts(timeout=0):
                raise AssertionError("it has none")
        assert (await sharded.counts()).ready == 1


async def test_a_queue_with_shards_is_not_deleted_from_under_them(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as sharded:
        await sharded.send("t")
        with pytest.raises(QueueInUse, match=f"2 shards: 'rqueue delete {queue_name}'"):
            await queue.delete(jobs=True)
        assert (await sharded.table()).version == 1
        for its in await sharded.queues():
            await its.delete(jobs=True)
        assert await queue.delete() == 0
    async with AsyncShardedQueue(queue_name, server.url) as sharded:
        with pytest.raises(ConfigError, match="has no shards"):
            await sharded.table()
