"""Transactions of a queue that is spread: one step of the shard of a key."""

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.sharded_queue import AsyncShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueSharded, TransactionRolledBack
from rqueue.model.job import JobState
from rqueue.tasks.options import Options


async def ready(queue: AsyncShardedQueue) -> dict[str, list[str]]:
    """The ids of the jobs that wait, by their shards."""
    found = {}
    for its in await queue.queues():
        async with its.consumer(mode="browse", jobs=100, renew=False) as browser:
            found[its.name] = [job.id for job in await browser.pull()]
    return found


async def test_jobs_of_one_key_are_one_step(server: EmbeddedRedis, queue_name: str) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=3) as queue:
        shard = (await queue.table()).name((await queue.table()).shard_of("k"))
        async with queue.transaction("k") as tx:
            one = tx.enqueue("t", 1)
            two = tx.send("t", [2], None, Options(id="two", key="k"))
            assert (await queue.counts()).ready == 0
        assert (await ready(queue))[shard] == [one.id, two.id]
        assert {one.queue, two.queue} == {shard} and one.created and two.created
        assert await two.state() is JobState.READY
        with pytest.raises(ZeroDivisionError):
            async with queue.transaction("k") as tx:
                tx.enqueue("t", 1 / 0)
        async with queue.transaction("k") as tx:
            again = tx.send("t", options=Options(id="two"))
            tx.enqueue("t")
        assert not again.created and (await queue.counts()).ready == 3
        async with queue.transaction("k") as tx:
            with pytest.raises(ConfigError, match="have the key 'k'"):
                tx.send("t", options=Options(key="other"))


async def test_an_ack_and_what_follows_it_are_one_step(
    server: EmbeddedRedis, queue_name: str
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as queue:
        await queue.send("t", options=Options(key="k", id="first"))
        async with await consumer_of(queue, "k") as consumer:
            (job,) = await consumer.pull()
            async with queue.transaction("k", consumer) as tx:
                tx.ack(job)
                follower = tx.enqueue("t")
            assert consumer.held == 0
            (job,) = await consumer.pull()
            assert job.id == follower.id
            await consumer.release(job)
            with pytest.raises(TransactionRolledBack):
                async with queue.transaction("k", consumer) as tx:
                    tx.ack(job)
                    tx.enqueue("t")
            async with queue.transaction("k", consumer) as tx:
                pass
        assert (await queue.counts()).ready == 1


async def consumer_of(queue: AsyncShardedQueue, key: str) -> AsyncConsumer:
    """A consumer of the shard of a key."""
    table = await queue.table()
    (its,) = [one for one in await queue.queues() if one.name == table.name(table.shard_of(key))]
    return its.consumer(jobs=100, renew=False)


async def test_a_shard_opens_meanwhile(server: EmbeddedRedis, queue_name: str) -> None:
    """Who is refused learns, and goes where the key is now; a consumer cannot."""
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=1) as queue,
        AsyncShardedQueue(queue_name, server.url) as other,
    ):
        keys = [f"k{number}" for number in range(8)]
        for key in keys:
            await queue.send("t", options=Options(key=key, id=f"old-{key}"))
        async with await consumer_of(queue, "k0") as consumer:
            jobs = {job.id: job for job in await consumer.pull()}
            assert await other.open() == 1
            table = await other.table()
            moved = [key for key in keys if table.shard_of(key).number]
            stay = [key for key in keys if key not in moved]
            async with queue.transaction(stay[0], consumer) as tx:
                tx.ack(jobs[f"old-{stay[0]}"])
                assert tx.enqueue("t").queue == queue_name
            with pytest.raises(ConfigError, match=f"belongs to '{queue_name}~1'"):
                async with queue.transaction(moved[0], consumer) as tx:
                    tx.ack(jobs[f"old-{moved[0]}"])
                    tx.enqueue("t")
            assert consumer.held == 7
            async with queue.transaction(moved[0]) as tx:
                new = tx.enqueue("t")
                known = tx.send("t", options=Options(id=f"old-{moved[0]}"))
            assert (new.queue, new.created) == (f"{queue_name}~1", True)
            assert (known.queue, known.created) == (f"{queue_name}~0", False)
        waits = (await ready(queue))[f"{queue_name}~1"]
        assert waits == [new.id]


async def test_what_goes_elsewhere_leaves_with_the_step(
    server: EmbeddedRedis, queue_name: str
) -> None:
    async with (
        AsyncShardedQueue(queue_name, server.url, shards=2) as queue,
        AsyncQueue(f"{queue_name}-mail", server.url) as mail,
    ):
        async with queue.transaction("k") as tx:
            tx.enqueue("t")
            tx.at(mail).enqueue("t", 2)
        assert ((await queue.counts()).ready, (await mail.counts()).ready) == (1, 1)


async def test_a_transaction_of_the_name_alone_is_refused(
    server: EmbeddedRedis, queue_name: str, queue: AsyncQueue
) -> None:
    async with AsyncShardedQueue(queue_name, server.url, shards=2) as sharded:
        await sharded.table()
        with pytest.raises(QueueSharded, match="ShardedQueue"):
            async with queue.transaction() as tx:
                tx.enqueue("t")
        with pytest.raises(ConfigError, match="key"):
            sharded.transaction("")
