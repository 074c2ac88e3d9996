"""What only asyncio has: cancelled waits, tasks that share a consumer or a listener."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    RedisTimeout,
)
from rqueue.model.job import Delivery
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_wake_listener import AsyncWakeListener
from rqueue.transport.task_connections import CALLS_MAX
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


def run(url: str, queue_name: str, body: Callable[[AsyncQueue], Awaitable[Any]]) -> Any:
    """Run `body` in a loop of its own with an AsyncQueue that is closed after it."""

    async def main() -> Any:
        async with asyncio.timeout(40), AsyncQueue(queue_name, url) as queue:
            return await body(queue)

    return asyncio.run(main())


Runs = Callable[[Callable[[AsyncQueue], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture
def arun(server: EmbeddedRedis, queue_name: str) -> Runs:
    return lambda body: run(server.url, queue_name, body)


@pytest.fixture
def far_run(proxy: Proxy, queue_name: str) -> Runs:
    return lambda body: run(proxy.url, queue_name, body)


def ids(jobs: list[Delivery]) -> list[str]:
    return [job.id for job in jobs]


# -- enqueue and results ---------------------------------------------------------------------------


def test_a_burst_opens_few_connections(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    """The calls of many tasks take turns; waits for results take none, and keep nobody."""
    many = 3 * CALLS_MAX

    async def body(queue: AsyncQueue) -> None:
        handles = await asyncio.gather(*(queue.send("t") for _ in range(many)))
        assert len({handle.id for handle in handles}) == many
        assert len(await queue.redis.client_list()) <= CALLS_MAX + 5
        waits = [asyncio.create_task(handle.result()) for handle in handles]
        while await queue.redis.hlen(queue.keys.awaited) < many:
            await asyncio.sleep(0.01)
        assert (await queue.counts()).ready == many
        for wait in waits:
            await end(wait)

    run(make_server().url, queue_name, body)


def test_a_turn_is_not_awaited_for_ever(far_run: Runs, proxy: Proxy) -> None:
    """Where the calls under way get no answer, the next ones try on their own."""

    async def body(queue: AsyncQueue) -> None:
        proxy.hold()
        calls = [asyncio.create_task(queue.send("t")) for _ in range(3 * CALLS_MAX)]
        while proxy.connections <= 2 * CALLS_MAX:
            await asyncio.sleep(0.01)
        proxy.release()
        await asyncio.gather(*calls)
        assert (await queue.counts()).ready == 3 * CALLS_MAX

    far_run(body)


def test_a_wait_may_be_cancelled(arun: Runs, server: EmbeddedRedis) -> None:
    async def body(queue: AsyncQueue) -> None:
        handle = await queue.send("t")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await handle.result()
        waiting = asyncio.create_task(handle.result())
        with monitoring(server.url) as monitor:
            await asyncio.to_thread(monitor.wait_for, "BLMOVE", handle.id)
            await end(waiting)
        async with queue.consumer(renew=False) as consumer:
            (job,) = await consumer.pull()
            await consumer.ack(job, 1)
        assert await handle.result(PATIENCE) == 1
        assert await queue.pause()
        assert await queue.resume()

    arun(body)


def test_what_a_call_uses_when_the_queue_is_closed_is_closed_behind_it(
    server: EmbeddedRedis, queue_name: str
) -> None:
    async def main() -> None:
        queue = AsyncQueue(queue_name, server.url)
        handle = await queue.send("t")
        async with queue.consumer() as consumer:
            (job,) = await consumer.pull()
            waiting = asyncio.create_task(handle.result(PATIENCE))
            while not (await queue.redis.info("clients"))["blocked_clients"]:
                await asyncio.sleep(0.01)
            await queue.close()
            await consumer.ack(job, 1)
            assert await waiting == 1
        assert queue._transport._free == []

    asyncio.run(main())


def test_a_batch_may_be_cancelled(far_run: Runs, near: Queue, proxy: Proxy) -> None:
    async def body(queue: AsyncQueue) -> None:
        await queue.send("t")
        proxy.hold()
        with monitoring(near.settings.url or "") as monitor:
            sending = asyncio.create_task(queue.enqueue_many([Call("t", (i,)) for i in range(600)]))
            await asyncio.to_thread(monitor.wait_for, "EVALSHA", "4,,0,250")
        await end(sending)
        proxy.release()
        # the reply that is late is not taken for that of another call
        assert (await queue.send("t")).created
        assert (await queue.enqueue_many([Call("t"), Call("t")]))[1].created
        assert (await queue.counts()).ready == 254

    far_run(body)


# -- the consumer ----------------------------------------------------------------------------------


def test_a_cancelled_wait_loses_nothing(arun: Runs, server: EmbeddedRedis) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(jobs=3, renew=False) as consumer:
            await consumer.pull()
            assert await consumer.wait(0) == []  # it listens; cancelled before, it reconnects
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await consumer.wait()
            handle = await queue.send("t")
            (wake,) = await consumer.wait(10)
            assert wake.job is not None
            assert wake.job.id == handle.id
            await handle.cancel()
            (wake,) = await consumer.wait(10)
            assert (wake.kind, consumer.held) == ("revoked", 0)

    arun(body)


def test_two_consumers_share_a_listener(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        other = queue.at(queue.name + "-b")
        listener = AsyncWakeListener(AsyncConnection(queue.redis, timeout=None))
        with pytest.raises(ValueError, match="nothing to listen to"):
            await listener.wait(0)
        first = AsyncConsumer(queue.redis, queue.keys, listener=listener, renew=False)
        second = AsyncConsumer(queue.redis, other.keys, listener=listener, renew=False)
        async with first, second:
            for consumer in (first, second):
                await consumer.pull()
            for target, name in ((queue, first.name), (other, second.name)):
                await target.send("t")
                assert [wake.consumer for wake in await listener.wait(10)] == [name]
        await listener.close()

    arun(body)


def test_tasks_take_turns_on_one_consumer(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        for i in range(40):
            await queue.send("t", [i])
        async with queue.consumer(jobs=40, renew=False) as consumer:
            jobs = await consumer.pull()
            done = await asyncio.gather(*(consumer.ack(job, 1) for job in jobs))
            assert all(done)

    arun(body)


def test_what_was_heard_while_the_listener_changed_is_kept(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        other = queue.at(queue.name + "-b")
        listener = AsyncWakeListener(AsyncConnection(queue.redis, timeout=None))
        first = AsyncConsumer(queue.redis, queue.keys, listener=listener, renew=False)
        second = AsyncConsumer(queue.redis, other.keys, listener=listener, renew=False)
        async with first:
            await first.pull()
            assert await listener.wait(0.01) == []  # it listens
            handle = await queue.send("t")
            assert listener._reader is not None
            await asyncio.wait({listener._reader})  # its word is there, and nobody asked yet
            async with second:
                (wake,) = await listener.wait(10)
                assert wake.job is not None
                assert wake.job.id == handle.id
        await listener.close()

    arun(body)


def test_a_silent_server_is_a_time_out(far_run: Runs, proxy: Proxy) -> None:
    async def body(queue: AsyncQueue) -> None:
        connection = AsyncConnection(queue.redis, timeout=1)
        assert await connection.command("PING") == b"PONG"
        assert connection.connected
        proxy.hold()
        with pytest.raises(RedisTimeout):
            await connection.command("PING")
        assert not connection.connected  # the late answer must not be taken for another one's
        proxy.release()
        assert await connection.command("ECHO", "x") == b"x"
        await connection.close()

    far_run(body)
