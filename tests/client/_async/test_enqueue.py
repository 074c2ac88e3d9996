"""Enqueue: options, one job per id whatever happens to the connection, errors of the server."""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue, Call
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BadArguments,
    ConnectionLost,
    NoConsumer,
    NotEncodable,
    RedisOutOfMemory,
    RedisUnavailable,
)
from rqueue.model.envelope import unpack
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy
from rqueue.transport import server_check
from tests.support.proxy import Proxy
from tests.support.pulling import apull, apull_one

registry = Registry()


@task(name="add", registry=registry, priority=6, headers={"app": "shop"})
def add(a: int, b: int = 0) -> int:
    return a + b


async def test_a_task_and_a_name(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    first = await queue.enqueue(add, 1, b=2)
    second = await queue.enqueue("other.task", "x", y=[1])
    jobs = {job.id: job for job in await apull(consumer, 2)}
    assert unpack(jobs[first.id].body) == ("add", [1], {"b": 2}, {"headers": {"app": "shop"}})
    assert jobs[first.id].level == 6
    assert unpack(jobs[second.id].body) == ("other.task", ["x"], {"y": [1]}, {})
    assert jobs[second.id].level == 4
    assert (first.created, second.created) == (True, True)


async def test_a_parameter_may_have_any_name(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    await queue.enqueue("t", task="a", self="b", args=1)
    assert unpack((await apull_one(consumer)).body)[2] == {"task": "a", "self": "b", "args": 1}


async def test_options_of_one_job(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    options = Options(
        id="my-own",
        priority=9,
        max_deliveries=3,
        retry=RetryPolicy(delay=2),
        time_limit=5,
        keep=60,
        labels={"gpu": True},
    )
    handle = await queue.send("t", (1,), options=options)
    job = await apull_one(consumer)
    assert (handle.id, job.id, job.level, job.max_deliveries) == ("my-own", "my-own", 9, 3)
    opts = unpack(job.body)[3]
    assert (opts["time_limit"], opts["keep"], opts["labels"]) == (5, 60, {"gpu": True})


async def test_due_times(queue: AsyncQueue) -> None:
    await queue.enqueue(add.options(at=timedelta(hours=1)), 1)
    await queue.enqueue(add.options(at=datetime.now(UTC) + timedelta(days=1)), 1)
    await queue.enqueue(add.options(at=datetime.now(UTC) - timedelta(days=1)), 1)
    counts = await queue.counts()
    assert (counts.scheduled, counts.ready) == (2, 1)
    assert 0 < counts.next_due_ms - counts.now <= 3_600_000


async def test_one_id_is_one_job(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    bound = add.options(id="order-7")
    assert (await queue.enqueue(bound, 1)).created
    assert not (await queue.enqueue(bound, 2)).created
    job = await apull_one(consumer)
    assert unpack(job.body)[1] == [1]
    await consumer.ack(job, 1)
    again = await queue.enqueue(bound, 3)
    assert not again.created
    assert await again.result(0) == 1


async def test_many(queue: AsyncQueue) -> None:
    calls = [Call(add, (i,)) for i in range(600)] + [Call("t", (1,), {"b": 2}, Options(id="x"))]
    handles = await queue.enqueue_many(iter(calls))
    assert len({handle.id for handle in handles}) == 601
    assert all(handle.created for handle in handles)
    async with queue.consumer(jobs=601, renew=False) as consumer:
        jobs = await consumer.pull() + await consumer.pull()
    assert [job.id for job in jobs] == [handle.id for handle in handles]
    again = await queue.enqueue_many([Call("t", options=Options(id="x")), Call("t")])
    assert [handle.created for handle in again] == [False, True]
    assert await queue.enqueue_many([]) == []


async def test_the_next_batch_is_packed_while_one_is_under_way(
    far: AsyncQueue, proxy: Proxy
) -> None:
    await far.send("t")
    proxy.hold()

    def calls() -> Iterator[Call]:
        for i in range(500):
            if i == 250:
                proxy.release()  # the first batch is sent, and its reply is held back until now
            yield Call("t", (i,))

    assert all(handle.created for handle in await far.enqueue_many(calls()))
    assert (await far.counts()).ready == 501


async def test_a_call_that_is_wrong_leaves_the_batch_before_it_stored(queue: AsyncQueue) -> None:
    with pytest.raises(BadArguments):
        await queue.enqueue_many([*(Call(add, (i,)) for i in range(250)), Call(add, ())])
    assert (await queue.counts()).ready == 250
    assert (await queue.send("t")).created


async def test_what_raises_stores_nothing(queue: AsyncQueue) -> None:
    """C-12."""
    with pytest.raises(BadArguments):
        await queue.enqueue(add, 1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(NotEncodable, match="argument 'a'"):
        await queue.enqueue(add, b"x")  # type: ignore[arg-type]
    with pytest.raises(NotEncodable, match=r"^arguments of task 't': 17,000,010 bytes"):
        await queue.send("t", ["x" * 17_000_000])
    with pytest.raises(BadArguments):
        await queue.enqueue_many([Call(add, (1,)), Call(add, ())])
    with pytest.raises(NoConsumer):
        await queue.send("t", options=Options(immediate=True))
    assert (await queue.counts()).ready == 0


async def test_immediate_is_delivered_to_who_waits(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    await consumer.pull()
    handle = await queue.send("t", options=Options(immediate=True))
    assert handle.handed_to == consumer.name
    assert [wake.job and wake.job.id for wake in await consumer.wait(10)] == [handle.id]


async def test_other_queues_over_one_connection(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    """A-40."""
    other = queue.at(f"{queue.name}-b")
    assert other is queue.at(f"{queue.name}-b")
    assert other.at(queue.name) is queue
    assert other.redis is queue.redis
    handle = await queue.enqueue_request(JobRequest("t", (), {}, Options(), (), other.name))
    assert handle.queue == other.name
    assert ((await queue.counts()).ready, (await other.counts()).ready) == (0, 1)


async def test_namespaces_are_apart(queue: AsyncQueue, server: EmbeddedRedis) -> None:
    async with AsyncQueue(queue.name, server.url, namespace="other") as other:
        await other.send("t")
        assert ((await queue.counts()).ready, (await other.counts()).ready) == (0, 1)


@pytest.mark.parametrize("after", [0, 1, 4, 9])
async def test_a_reply_that_is_cut_makes_no_second_job(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, after: int
) -> None:
    await far.send("t")  # the script is known, the connection is there
    proxy.cut_reply(after)
    handle = await far.send("t", [1])
    assert proxy.wait_cut()
    assert handle.created  # it was sent twice, but this call made the job
    assert (await near.counts()).ready == 2

    proxy.cut_reply(after)
    mine = await far.send("t", options=Options(id="mine"))
    assert (mine.id, (await near.counts()).ready) == ("mine", 3)

    proxy.cut_reply(after)
    handles = await far.enqueue_many([Call("t", (i,)) for i in range(300)])
    assert all(handle.created for handle in handles)
    assert (await near.counts()).ready == 303


async def test_a_server_that_is_away_and_comes_back(far: AsyncQueue, proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionLost) as error:
        await far.send("t")
    assert isinstance(error.value, RedisUnavailable)
    assert f"127.0.0.1:{proxy.port}" in str(error.value)
    proxy.accept()
    assert (await far.send("t")).created


async def test_scripts_survive_a_flush_and_a_restart(
    near: AsyncQueue, private_server: EmbeddedRedis
) -> None:
    await near.send("t")
    await near.redis.script_flush()
    await near.send("t")
    private_server.restart()
    await near.send("t")
    assert (await near.counts()).ready == 3


async def test_a_server_without_memory_stores_nothing(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    server = make_server(config={"maxmemory": "3mb"})
    async with AsyncQueue(queue_name, server.url) as queue:
        with pytest.raises(RedisOutOfMemory):
            for _ in range(100):
                await queue.send("t", ["x" * 100_000])
        before = (await queue.counts()).ready
        with pytest.raises(RedisOutOfMemory):
            await queue.send("t", ["x" * 100_000])
        assert (await queue.counts()).ready == before


async def test_a_policy_that_evicts_is_warned_of_once(
    make_server: Callable[..., EmbeddedRedis],
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = make_server(config={"maxmemory-policy": "allkeys-lru"})
    with caplog.at_level(logging.WARNING, "rqueue"):
        for _ in range(2):
            async with AsyncQueue(queue_name, server.url) as queue:
                await queue.send("t")
                await queue.send("t")
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "maxmemory-policy is 'allkeys-lru'" in warnings[0]
    assert server.url in warnings[0]


async def test_a_server_that_hides_itself_is_no_trouble(
    private_server: EmbeddedRedis, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncQueue(queue_name, private_server.url) as queue:
        await queue.redis.acl_setuser(
            "app",
            enabled=True,
            passwords=["+pw"],
            keys=["*"],
            categories=["+@all"],
            commands=["-info"],
        )
    url = private_server.tcp_url.replace("redis://", "redis://app:pw@")
    server_check._seen.discard(url)
    with caplog.at_level(logging.INFO, "rqueue"):
        async with AsyncQueue(queue_name, url) as queue:
            assert (await queue.send("t")).created
    assert "cannot look at the settings" in caplog.text
    assert "pw@" not in caplog.text
