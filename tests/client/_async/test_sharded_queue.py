"""One queue that is spread over several."""

from time import monotonic

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.sharded_queue import AsyncShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueSharded, ShardsChanged, ShardsMoving
from rqueue.inspector import Inspector
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE


def keyed(number: int) -> Options:
    return Options(key=f"k{number}")


async def test_jobs_with_keys_go_where_their_keys_are(
    server: EmbeddedRedis, queue_name: str
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=4) as queue:
        for round_ in range(3):
            for number in range(20):
                await queue.send("t", [round_], options=keyed(number))
        counts = [its.ready for its in [await one.counts() for one in await queue.queues()]]
        assert sum(counts) == 60 == (await queue.counts()).ready and min(counts) > 0
        assert all(count % 3 == 0 for count in counts)
        many = await queue.enqueue_many([Call("t", [1], None, keyed(n)) for n in range(20)])
        assert len({handle.id for handle in many}) == 20
        counts = [its.ready for its in [await one.counts() for one in await queue.queues()]]
        assert all(count % 4 == 0 for count in counts)


async def test_a_queue_of_that_name_knows_its_shards(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    """Who enqueues by name need not know that it is spread."""
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as sharded:
        await sharded.table()
        handle = await queue.send("t", options=Options(id="a"))
        assert handle.created and not (await queue.send("t", options=Options(id="a"))).created
        assert len(await queue.enqueue_many([Call("t") for _ in range(9)])) == 9
        assert (await sharded.counts()).ready == 10
        assert (await (await sharded.job("a")).state()).value == "ready"
        assert await sharded.cancel("a")
        assert len([job async for job in sharded.browse()]) == 9
        consumer = queue.consumer()
        with pytest.raises(QueueSharded):
            await consumer.register()
        await consumer.close()
        with pytest.raises(ShardsChanged, match=f"a shard of queue '{queue_name}'"):
            await queue.at(f"{queue_name}~0").send("t")


async def test_a_shard_that_opens_waits_for_what_came_before(
    server: EmbeddedRedis, queue_name: str
) -> None:
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=1) as one,
        AsyncShardedQueue(queue_name, server.url) as other,
    ):
        for number in range(8):
            await one.send("t", [0], options=keyed(number))
            await other.send("t", [1], options=keyed(number))
        assert await one.open() == 1
        with pytest.raises(ShardsMoving):
            await one.open()
        for number in range(8):
            await other.send("t", [2], options=keyed(number))
        first, second = await one.queues()
        assert (await first.counts()).ready + (await second.counts()).ready == 24
        consumer, later = first.consumer(jobs=100, renew=False), second.consumer(jobs=100)
        async with consumer, later:
            assert await later.pull() == []
            jobs = await consumer.pull()
            await consumer.settle(ack=[job.id for job in jobs if job.header.position <= 15])
            assert (await one.advance()).moving
            await consumer.settle(ack=[job.id for job in jobs if job.header.position > 15])
            assert not (await one.advance()).moving
            assert len(await later.pull()) == (await second.counts()).held > 0


async def in_two_shards(queue: AsyncShardedQueue) -> None:
    """Eight jobs before a shard opens, and eight behind."""
    for number in range(8):
        await queue.send("t", options=keyed(number))
    assert await queue.open() == 1
    for number in range(8):
        await queue.send("t", options=keyed(number))


@pytest.mark.parametrize("listens", [True, False])
async def test_consumers_of_ones_own_lift_fences_as_pools_do(
    server: EmbeddedRedis, queue_name: str, listens: bool
) -> None:
    """When the shard has a word for them, and with each renewal."""
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        await in_two_shards(queue)
        consumers = [
            await its.consumer(jobs=9, renew=not listens, lease=2).register()
            for its in await queue.queues()
        ]
        until = monotonic() + PATIENCE
        while (await queue.counts()).ready and monotonic() < until:
            for consumer in consumers:
                if listens and consumer.state != "notified":
                    await consumer.wait(0.05)
                jobs = await consumer.pull()
                await consumer.settle(ack=[job.id for job in jobs])
        assert (await queue.counts()).ready == 0
        for consumer in consumers:
            await consumer.close()
        assert not (await queue.table()).moving


async def test_the_doctor_sees_a_fence_that_stands(server: EmbeddedRedis, queue_name: str) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        await in_two_shards(queue)
        first, second = await queue.queues()
        await first.cancel_all()
        async with first.consumer(jobs=9, renew=False) as consumer:
            assert await consumer.pull() == []  # the marks go
        with Inspector(server.url) as inspector:
            doctor = inspector.doctor(wait=lambda _: None)
            found = doctor.check_queue(queue_name)
            assert [one.kind for one in found] == ["standing-fence"]
            assert doctor.repair(found[0])
            assert doctor.check_queue(queue_name) == []
        async with second.consumer(jobs=9, renew=False) as consumer:
            assert await consumer.pull()


async def test_a_shard_is_drained(server: EmbeddedRedis, queue_name: str) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=3) as queue:
        await queue.configure(max_deliveries=3)
        for number in range(9):
            await queue.send("t", options=keyed(number))
        await queue.drain(1)
        for number in range(9):
            await queue.send("t", options=keyed(number))
        _, drained, _ = await queue.queues()
        async with drained.consumer(jobs=100) as consumer:
            jobs = await consumer.pull()
            assert 0 < len(jobs) < 9
            await consumer.settle(ack=[job.id for job in jobs])
        table = await queue.advance()
        assert (table.moving, table.shards[1].state) == ("", "closed")
        assert [one.name for one in await queue.queues()] == [
            f"{queue_name}~0",
            f"{queue_name}~2",
        ]
        assert await queue.open(1) == 1
        with pytest.raises(ConfigError, match="is open"):
            await queue.open(1)


async def test_a_queue_with_jobs_gets_no_shards(queue: AsyncQueue, server: EmbeddedRedis) -> None:
    await queue.send("t")
    async with AsyncShardedQueue(queue.name, server.url, shards=2) as sharded:
        with pytest.raises(ConfigError, match="shards"):
            await sharded.table()
    async with AsyncShardedQueue(f"{queue.name}-x", server.url) as unknown:
        with pytest.raises(ConfigError, match="rqueue shards create"):
            await unknown.send("t")


async def test_an_id_whose_key_moved_is_known(server: EmbeddedRedis, queue_name: str) -> None:
    """Also to clients that learn of the move by being refused, alone and in a batch, and once the
    job has ended."""
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=1) as queue,
        AsyncShardedQueue(queue_name, server.url) as other,
    ):
        ids = [f"id-{number}" for number in range(12)]
        for id_ in ids:
            await queue.send("t", options=Options(id=id_))
        await other.table()
        await queue.open()
        (first, second) = await queue.queues()
        again = await other.enqueue_many([Call("t", [1], None, Options(id=id_)) for id_ in ids])
        assert not any(handle.created for handle in again)
        assert {handle.queue for handle in again} == {first.name}
        assert not (await queue.send("t", options=Options(id=ids[3]))).created
        fresh = [Call("t", [1], None, Options(id=f"new-{id_}")) for id_ in ids]
        new = await other.enqueue_many(fresh)
        assert all(handle.created for handle in new)
        assert {handle.queue for handle in new} == {first.name, second.name}
        async with first.consumer(jobs=100) as consumer:
            jobs = await consumer.pull()
            await consumer.settle(ack=[job.id for job in jobs])
        assert not (await queue.advance()).moving
        handles = [await other.send("t", options=Options(id=id_)) for id_ in ids]
        assert not any(handle.created for handle in handles)
        assert (await queue.counts()).ready == (await second.counts()).ready


async def test_a_unique_key_that_moved_has_one_job(server: EmbeddedRedis, queue_name: str) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        uniques = [Options(unique=UniqueKey(f"u{number}")) for number in range(8)]
        owners = [await queue.send("t", options=options) for options in uniques]
        await queue.open()
        for owner, options in zip(owners, uniques, strict=True):
            found = await queue.send("t", options=options)
            assert (found.id, found.created, found.conflict) == (owner.id, False, "ready")
        many = await queue.enqueue_many([Call("t", [], None, options) for options in uniques])
        assert [handle.id for handle in many] == [owner.id for owner in owners]
        assert (await queue.counts()).ready == 8


async def test_what_nobody_knows_any_more_is_forgotten(
    server: EmbeddedRedis, queue_name: str, client: redis.Redis
) -> None:
    """Then an enqueue asks one shard alone again."""
    async with AsyncShardedQueue(queue_name, server.url, shards=1) as queue:
        await queue.configure(keep="1s")
        await queue.send("t", options=Options(id="a"))
        await queue.open()
        assert (await queue.table()).past
        await queue.cancel("a")
        for moment, remembered in ((0, True), (1000, True), (4000, False)):
            for its in await queue.queues():
                client.hset(its.keys.meta, "clock", moment)
            assert bool((await queue.advance()).past) is remembered
