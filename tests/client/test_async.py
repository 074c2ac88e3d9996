"""The asyncio client does what the sync one does, under the same names."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.put_handle import AsyncPutHandle
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.put_handle import PutHandle
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BadArguments,
    BufferClosed,
    BufferFull,
    ConfigError,
    ConnectionLost,
    JobCancelled,
    JobFailed,
    LifecycleError,
    NotEncodable,
    NotRegistered,
    RedisTimeout,
    RedisUnavailable,
    RegistrationLost,
    ResultNotReady,
    ResultTimeout,
    UnknownJob,
    WrongServer,
)
from rqueue.model.envelope import unpack
from rqueue.model.job import Delivery, JobState
from rqueue.protocol import commands
from rqueue.protocol.credit import GrantCredit, SharedCredit
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.request import JobRequest
from rqueue.testing import move_time
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_wake_listener import AsyncWakeListener
from rqueue.transport.redis_client import execute
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


# -- parity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sync", "other"),
    [
        (Queue, AsyncQueue),
        (JobHandle, AsyncJobHandle),
        (PutHandle, AsyncPutHandle),
        (Consumer, AsyncConsumer),
        (BackgroundPuts, AsyncBackgroundPuts),
    ],
)
def test_both_have_the_same_methods_with_the_same_parameters(sync: Any, other: Any) -> None:
    def surface(kind: Any) -> dict[str, list[tuple[str, Any, Any]] | None]:
        return {
            name: (
                [
                    (parameter.name, parameter.kind, parameter.default)
                    for parameter in inspect.signature(value).parameters.values()
                ]
                if callable(value)
                else None
            )
            for name, value in inspect.getmembers(kind)
            if not name.startswith("_")
        }

    assert surface(sync) == surface(other)


# -- enqueue and results ---------------------------------------------------------------------------


def test_enqueue_and_result(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        handle = await queue.enqueue(add, 1, b=2)
        named = await queue.send("other", [1], options=Options(id="mine", priority=9))
        assert (handle.created, named.id) == (True, "mine")
        assert not (await queue.send("other", options=Options(id="mine"))).created
        many = await queue.enqueue_many([Call(add, (i,)) for i in range(300)])
        assert len(many) == 300
        async with queue.consumer(jobs=400, renew=False) as consumer:
            jobs = await consumer.pull()
            assert ids(jobs) == ["mine", handle.id, *(job.id for job in many)]
            assert unpack(jobs[1].body) == ("add", [1], {"b": 2}, {})
            assert await handle.state() is JobState.HELD
            with pytest.raises(ResultNotReady):
                await handle.result(0)
            with pytest.raises(ResultTimeout):
                await handle.result(0.01)
            waiting = [asyncio.create_task(handle.result(20)) for _ in range(5)]
            await asyncio.sleep(0)
            assert await consumer.ack(jobs[1], 3)
            assert await asyncio.gather(*waiting) == [3] * 5
            await consumer.reject(jobs[0], "broken")
            with pytest.raises(JobFailed, match="broken"):
                await named.result(5)
            assert await many[0].cancel()
            with pytest.raises(JobCancelled):
                await many[0].result(5)
        with pytest.raises(UnknownJob):
            await queue.job("nobody").result()
        assert (await queue.counts()).ready == 299

    arun(body)


def test_what_raises_stores_nothing(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        with pytest.raises(BadArguments):
            await queue.enqueue(add, 1, 2, 3)  # type: ignore[call-arg]
        with pytest.raises(NotEncodable):
            await queue.enqueue("t", {1})
        assert (await queue.counts()).ready == 0

    arun(body)


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


def test_admin(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        await queue.configure(max_deliveries=3, keep="1h")
        later = await queue.send("t", options=Options(delay_ms=60_000))
        assert await queue.promote(later.id) == 1
        assert await queue.promote() == 0
        assert await queue.cancel(later.id)
        assert not await queue.cancel(later.id)
        assert (await queue.counts()).meta["keep_ms"] == "3600000"
        other = queue.at("b")
        assert other is queue.at("b")
        assert (
            await queue.enqueue_request(JobRequest("t", (), {}, Options(), (), "b"))
        ).queue == "b"
        await other.job("x").state()
        assert "AsyncQueue" in repr(queue)

    arun(body)


@pytest.mark.parametrize("after", [0, 5])
def test_a_reply_that_is_cut_makes_no_second_job(
    far_run: Runs, near: Queue, proxy: Proxy, after: int
) -> None:
    async def body(queue: AsyncQueue) -> None:
        await queue.send("t")
        proxy.cut_reply(after)
        assert (await queue.send("t")).created
        assert proxy.wait_cut()
        handle = await queue.send("t")
        result = asyncio.create_task(handle.result(20))
        with monitoring(near.settings.url or "") as monitor:
            await asyncio.to_thread(monitor.wait_for, "BLMOVE")
            proxy.cut()
            await asyncio.to_thread(monitor.wait_for, "BLMOVE")
        with near.consumer(jobs=9, renew=False) as consumer:
            jobs = consumer.pull()
            consumer.ack(jobs[2], "tea")
        assert await result == "tea"
        assert len(jobs) == 3
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            await queue.send("t")
        proxy.accept()

    far_run(body)


def test_a_policy_that_evicts_is_warned_of(
    make_server: Callable[..., EmbeddedRedis], caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server(config={"maxmemory-policy": "allkeys-lru"})

    async def body(queue: AsyncQueue) -> None:
        await queue.send("t")
        await queue.send("t")

    with caplog.at_level(logging.WARNING, "rqueue"):
        run(server.url, "q", body)
    assert len(caplog.records) == 1


# -- the consumer ----------------------------------------------------------------------------------


def test_the_protocol(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        consumer = queue.consumer(jobs=2, renew=False)
        with pytest.raises(NotRegistered):
            await consumer.pull()
        async with consumer:
            with pytest.raises(LifecycleError):
                await consumer.register()
            assert await consumer.pull() == []
            assert await consumer.wait(0.01) == []
            handed = await queue.send("t")
            assert handed.handed_to == consumer.name
            (job,) = await apull(consumer, 1)
            sent = [(await queue.send("t", [i])).id for i in range(5)]
            assert await consumer.retry(job, delay=60, error={"type": "X"})
            # the first was handed over, and comes before what is pulled behind it
            first, second = await consumer.settle(pull=True, release=[])
            assert ids([first, second]) == sent[:2]
            assert await consumer.release(second)
            assert not await consumer.release(second)
            assert consumer.refused == [second.id]
            assert ids(await consumer.flush()) == sent[1:2]
            await consumer.settle(ack=sent[:2])
            assert await consumer.interest(2) == "notified"
            seen: list[str] = []
            async for jobs in consumer.drain():
                seen += ids(jobs)
                await consumer.settle(ack=jobs)
            assert seen == sent[2:]
            assert await consumer.stop() == []
            assert await consumer.grant(1) == "notified"  # somebody is to watch the schedule
        await consumer.close()
        async with queue.consumer(jobs=9, mode="browse", renew=False) as browser:
            assert await browser.flush() == []

    arun(body)


def test_credit(arun: Runs) -> None:
    async def body(queue: AsyncQueue) -> None:
        for i in range(9):
            await queue.send("t", [i])
        credit = GrantCredit(3)
        async with queue.consumer(credit=credit, renew=False) as consumer:
            jobs = await consumer.pull()
            assert await consumer.settle(ack=jobs, pull=True) == []
            assert await consumer.grant(4) == "notified"
            jobs = await consumer.pull()
            await consumer.settle(ack=jobs[:1])
            assert (len(jobs), await consumer.pull()) == (4, [])
            with pytest.raises(ConfigError):
                await consumer.interest(1)
        other = queue.at(queue.name + "-b")
        shared = SharedCredit(4)
        async with (
            other.consumer(credit=shared, renew=False) as idle,
            queue.consumer(credit=shared, renew=False) as busy,
        ):
            assert await idle.pull() == []
            assert idle.window.jobs == 1
            assert len(await busy.pull()) == 3

    arun(body)


def test_a_cancelled_wait_loses_nothing(arun: Runs, server: EmbeddedRedis) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(jobs=3, renew=False) as consumer:
            await consumer.pull()
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


def test_lost_connections(far_run: Runs, near: Queue, proxy: Proxy) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(jobs=2, renew=False) as consumer:
            await consumer.settle(pull=True)
            with monitoring(near.settings.url or "") as monitor:
                waiting = asyncio.create_task(consumer.wait(20))
                await asyncio.to_thread(monitor.wait_for, "BLPOP")
                proxy.cut()
            assert await waiting == []
            near.pause()
            sent = [near.send("t").id for _ in range(2)]
            near.resume()
            assert [wake.kind for wake in await consumer.wait(20)] == ["reconnected"]
            with pytest.raises(ConnectionLost):
                await consumer.pull()
            await consumer.interest(2)
            proxy.swallow_reply()
            with pytest.raises(ConnectionLost):
                await consumer.pull()
            assert ids(await consumer.pull(recall=True)) == sent
            proxy.refuse()
            with pytest.raises(ConnectionLost):
                while True:
                    await consumer.wait(20)
            proxy.accept()
            assert [wake.kind for wake in await consumer.wait(20)] == ["reconnected"]
            proxy.cut()
        assert near.counts().ready == 2

    far_run(body)


def test_a_lease_is_renewed_and_may_be_lost(
    arun: Runs, server: EmbeddedRedis, queue: Queue
) -> None:
    async def body(mine: AsyncQueue) -> None:
        async with mine.consumer(lease=1.2) as consumer:
            with monitoring(server.url) as monitor:
                await asyncio.to_thread(monitor.wait_for, "EVALSHA", consumer.name, "1200", times=2)
        async with mine.consumer(lease=1.2, renew=False) as consumer:
            first = consumer.name
            move_time(queue, 5000)
            execute(queue.redis, commands.renew(queue.keys, 1000, []))
            with pytest.raises(RegistrationLost, match="lease"):
                await consumer.pull()
            await consumer.rejoin()
            assert consumer.name != first

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


def test_a_wire_teaches_a_server_that_forgot(private_server: EmbeddedRedis) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(renew=False) as consumer:
            assert await consumer.pull() == []
            await queue.redis.script_flush()
            assert await consumer.pull() == []
            await queue.redis.script_flush()
            assert (await queue.send("t")).handed_to == consumer.name

    run(private_server.url, "q", body)


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
