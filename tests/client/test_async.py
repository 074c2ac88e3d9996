"""What only asyncio has: cancelled waits, tasks that share a consumer, puts from a task."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BufferClosed,
    BufferFull,
    LifecycleError,
    NotEncodable,
    RedisTimeout,
    RedisUnavailable,
    ResultTimeout,
    WrongServer,
)
from rqueue.model.job import Delivery
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_wake_listener import AsyncWakeListener
from tests.support.monitor import monitoring
from tests.support.proxy import Proxy
from tests.support.pulling import apull

registry = Registry()


@task(name="add", registry=registry)
def add(a: int, b: int = 0) -> int:
    return a + b


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
        assert await handle.result(5) == 1
        assert await queue.pause()
        assert await queue.resume()

    arun(body)


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


# -- background puts -------------------------------------------------------------------------------


def test_puts(arun: Runs, queue: Queue) -> None:
    heard: list[str] = []

    async def body(mine: AsyncQueue) -> list[str]:
        async with mine.putter() as putter:
            putter.add_listener(lambda handle: heard.append(handle.id))
            handles = [await putter.put(add, i) for i in range(1200)]
            assert putter.pending
            assert await putter.flush(20)
            handles.append(await putter.put_call(Call("t", options=Options(priority=0))))
            assert not handles[-1].stored
            assert await handles[-1].wait_stored(20)
            bound = add.options(async_sender=putter, priority=0)
            assert bound.queue == mine.name
            last = await bound.aenqueue(1)
            with pytest.raises(LifecycleError):
                await add.options(async_sender=putter, queue="other").aenqueue(1)
            with pytest.raises(NotEncodable):
                await putter.put("t", {1})
            assert await putter.flush(20)
            assert (putter._engine._task, putter.pending, putter.failed) == (None, 0, 0)
        with pytest.raises(BufferClosed):
            await putter.put("t")
        assert await putter.close() == []
        return [handle.id for handle in handles] + [last.id]

    made = arun(body)
    with queue.consumer(jobs=500, mode="browse", renew=False) as browser:
        assert ids(browser.flush()) == made
    assert heard == made


def test_puts_over_an_outage(far_run: Runs, near: Queue, proxy: Proxy) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.putter(limit=25, batch=10) as putter:
            await putter.put("t")
            assert await putter.flush(20)
            proxy.cut_reply(4)
            handles = [await putter.put("t", i) for i in range(20)]
            assert await putter.flush(20)
            assert all(handle.created for handle in handles)
            proxy.refuse()
            for _ in range(25):
                handle = await putter.put("t")
            with pytest.raises(BufferFull):
                await putter.put_call(Call("t"), timeout=0.05)
            assert not await putter.flush(0.05)
            with pytest.raises(ResultTimeout):
                await handle.result(0.01)
            blocked = asyncio.create_task(putter.put("t"))
            proxy.accept()
            await blocked
            assert await putter.flush(20)
        assert near.counts().ready == 47

        proxy.refuse()
        told: list[Any] = []
        putter = queue.putter(on_error=lambda error, puts: told.append((error, puts)))
        handle = await putter.put("t")
        left = await putter.close(0.05)
        assert [put.id for put in left] == [handle.id]
        assert told[0][1] == left
        with pytest.raises(RedisUnavailable):
            await handle.cancel()
        with pytest.raises(LifecycleError, match="1 job"):
            async with queue.putter() as putter:
                await putter.put("t")
                close = putter.close
                putter.close = lambda: close(0.05)  # type: ignore[method-assign, misc, assignment]
        proxy.accept()
        assert (await queue.enqueue_puts(left)).accepted == 1

    far_run(body)


def test_puts_that_are_refused(arun: Runs, queue: Queue) -> None:
    queue.redis.hset(queue.keys.meta, "v", "99")

    async def body(mine: AsyncQueue) -> None:
        async with mine.putter() as putter:
            handle = await putter.put("t")
            assert await putter.flush(20)
            assert (handle.stored, putter.failed) == (False, 1)
            with pytest.raises(WrongServer):
                await handle.result()

    arun(body)


def test_results_of_puts(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.putter() as putter, queue.consumer(renew=False) as consumer:
            handle = await putter.put(add, 1)
            result = asyncio.create_task(handle.result(20))
            (job,) = await apull(consumer, 1)
            await consumer.ack(job, 5)
            assert await result == 5
            other = await putter.put(add, 1)
            assert await other.cancel()

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
            await asyncio.wait({listener._reader})  # it was told, and nobody asked yet
            async with second:
                (wake,) = await listener.wait(10)
                assert wake.job is not None
                assert wake.job.id == handle.id
        await listener.close()

    arun(body)


def test_a_silent_server_is_a_time_out(far_run: Runs, proxy: Proxy) -> None:
    async def body(queue: AsyncQueue) -> None:
        connection = AsyncConnection(queue.redis, timeout=0.1)
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
