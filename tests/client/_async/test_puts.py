"""Background puts: nothing lost, nothing doubled, nothing out of order, and no polling."""

import logging
import time
from functools import partial
from typing import Any

import pytest

from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue import AsyncQueue, Call
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BadArguments,
    BufferClosed,
    BufferFull,
    ConfigError,
    LifecycleError,
    NotEncodable,
    RedisUnavailable,
    ResultTimeout,
    WrongServer,
)
from rqueue.protocol.commands import Put
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from tests.support.both import AsyncTogether, aoutside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import apull_one

registry = Registry()


@task(name="add", registry=registry)
def add(a: int, b: int = 0) -> int:
    return a + b


async def waiting_ids(queue: AsyncQueue) -> list[str]:
    """Ids of the jobs that wait, in their order."""
    async with queue.consumer(jobs=500, mode="browse", renew=False) as browser:
        return [job.id for job in await browser.flush()]


async def test_jobs_are_stored_in_order(queue: AsyncQueue, putter: AsyncBackgroundPuts) -> None:
    handles = [await putter.put(add, i, b=1) for i in range(2000)]
    assert await putter.flush(20)
    assert await waiting_ids(queue) == [handle.id for handle in handles]
    assert all(handle.stored and handle.created for handle in handles)
    assert (putter.pending, putter.failed) == (0, 0)
    assert await putter.flush(0)


async def test_a_put_returns_before_redis_answers(
    far: AsyncQueue, proxy: Proxy, near: AsyncQueue
) -> None:
    async with far.putter() as putter:
        proxy.hold()
        handle = await putter.put("t", 1)
        assert (putter.pending, handle.stored) == (1, False)
        assert not await putter.flush(0.05)
        assert not await handle.wait_stored(0.01)
        with pytest.raises(ResultTimeout, match="not stored yet"):
            await handle.result(0.01)
        proxy.release()
        assert await handle.wait_stored(20)
        assert handle.stored
    assert await waiting_ids(near) == [handle.id]


async def test_batches_are_made_by_size_and_by_time(
    queue: AsyncQueue, server: EmbeddedRedis
) -> None:
    with monitoring(server.url) as monitor:
        async with queue.putter(batch=10, linger=60) as putter:
            for _ in range(10):
                await putter.put("t")
            await aoutside(monitor.wait_for, "EVALSHA", "4,,0,10")  # full: no lingering
            for _ in range(3):
                await putter.put("t")
            assert await putter.flush(20)  # nor with a flush
            await aoutside(monitor.wait_for, "EVALSHA", "4,,0,3")
        async with queue.putter(linger=0.02) as putter:
            await putter.put("t")
            await aoutside(monitor.wait_for, "EVALSHA", "4,,0,1")


async def test_options_travel(queue: AsyncQueue, putter: AsyncBackgroundPuts) -> None:
    await putter.put(add.options(priority=9), 1)
    await putter.put(add, 2)
    await putter.put_call(Call("t", options=Options(delay_ms=60_000, id="later", max_deliveries=2)))
    await putter.put_call(Call(add, (3,)))
    handle = await add.options(async_sender=putter).aenqueue(4)
    assert handle.queue == queue.name
    assert await putter.flush(20)
    counts = await queue.counts()
    assert (counts.scheduled, counts.levels) == (1, {9: 1, 4: 3})
    assert handle.id in await waiting_ids(queue)
    with pytest.raises(LifecycleError, match="goes to queue 'other'"):
        await add.options(async_sender=putter, queue="other").aenqueue(4)


async def test_what_cannot_be_packed_is_refused_at_once(putter: AsyncBackgroundPuts) -> None:
    with pytest.raises(NotEncodable):
        await putter.put("t", b"x")
    with pytest.raises(BadArguments):
        await putter.put(add, 1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="immediate"):
        await putter.put_call(Call("t", options=Options(immediate=True)))
    with pytest.raises(ConfigError):
        putter.queue.putter(batch=0)
    with pytest.raises(ConfigError):
        putter.queue.putter(limit=0)
    assert await putter.flush(0)  # C-11: they do not count


async def test_arguments_are_taken_as_they_are_at_the_put(
    queue: AsyncQueue, putter: AsyncBackgroundPuts
) -> None:
    args = [1]
    await putter.put("t", args)
    args.append(2)
    await putter.flush()
    async with queue.consumer(renew=False) as consumer:
        assert b"[1]" in (await apull_one(consumer)).body


async def test_results_wait_for_the_store_first(
    queue: AsyncQueue, putter: AsyncBackgroundPuts
) -> None:
    handle = await putter.put(add, 1, b=2)
    async with AsyncTogether() as together, queue.consumer(renew=False) as consumer:
        result = together.start(handle.result, 20)
        await consumer.ack(await apull_one(consumer), 3)
        assert await result.result(PATIENCE) == 3
    other = await putter.put("t")
    assert await other.cancel()


async def test_known_ids(queue: AsyncQueue, putter: AsyncBackgroundPuts) -> None:
    await queue.send("t", options=Options(id="a"))
    handles = [await putter.put_call(Call("t", options=Options(id=id_))) for id_ in "aba"]
    assert await putter.flush(20)
    assert [handle.created for handle in handles] == [False, True, False]
    assert await waiting_ids(queue) == ["a", "b"]


# -- listeners -------------------------------------------------------------------------------------


async def test_listeners_hear_of_every_job_once_in_order(
    queue: AsyncQueue, putter: AsyncBackgroundPuts
) -> None:
    heard: list[tuple[str, str]] = []

    def broken(handle: Any) -> None:
        raise RuntimeError("a listener's own fault")

    putter.add_listener(lambda handle: heard.append(("first", handle.id)))
    putter.add_listener(broken)
    putter.add_listener(lambda handle: heard.append(("second", handle.id)))
    handles = [await putter.put("t") for _ in range(700)]
    assert await putter.close() == []
    assert heard == [(name, handle.id) for handle in handles for name in ("first", "second")]


async def test_jobs_that_cannot_be_stored_are_reported(
    queue: AsyncQueue, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[tuple[Exception, list[Put]]] = []
    await queue.redis.hset(queue.keys.meta, "v", "99")  # of another version
    async with queue.putter(on_error=lambda error, puts: reported.append((error, puts))) as putter:
        handle = await putter.put_call(Call("t", (1,), options=Options(priority=7, delay_ms=5)))
        other = await putter.put("t")
        assert await putter.flush(20)  # C-13: what was refused is finished
        assert isinstance(handle.error, WrongServer)
        assert (handle.stored, putter.failed, putter.pending) == (False, 2, 0)
        for wait in (handle.result, handle.wait_stored, handle.cancel):
            with pytest.raises(WrongServer):
                await wait()
    # the second may be in the same batch or in one of its own
    assert all(isinstance(error, WrongServer) for error, _ in reported)
    puts = [put for _, batch in reported for put in batch]
    assert [(put.id, put.priority, put.delay_ms) for put in puts] == [
        (handle.id, 7, 5),
        (other.id, 4, 0),
    ]
    await queue.redis.hset(queue.keys.meta, "v", "1")
    assert (await queue.enqueue_puts(puts)).accepted == 2

    await queue.redis.hset(queue.keys.meta, "v", "99")
    with caplog.at_level(logging.ERROR, "rqueue"):
        async with queue.putter() as putter:
            lost = await putter.put("t")
            await putter.flush()
    assert "1 job for queue" in caplog.text
    assert lost.id in caplog.text


# -- the bounded buffer ----------------------------------------------------------------------------


async def test_a_full_buffer_blocks_until_there_is_room(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    async with far.putter(limit=3, linger=60) as putter:
        proxy.hold()
        for _ in range(3):
            await putter.put("t")
        start = time.monotonic()
        with pytest.raises(BufferFull, match=r"\(3 jobs\) stayed full for 0.05 s"):
            await putter.put_call(Call("t"), timeout=0.05)
        assert 0.05 <= time.monotonic() - start < 20
        with pytest.raises(BufferFull):
            await putter.put_call(Call("t"), timeout=0)
        async with AsyncTogether() as together:
            blocked = [together.start(putter.put, "t") for _ in range(4)]
            proxy.release()
            assert all([await started.result(PATIENCE) for started in blocked])
        assert await putter.flush(20)
    assert len(await waiting_ids(near)) == 7


async def test_a_buffer_is_bounded_in_bytes_too(far: AsyncQueue, proxy: Proxy) -> None:
    async with far.putter(limit_bytes=1000, timeout=0.02) as putter:
        proxy.hold()
        await putter.put("t", "x" * 5000)  # larger than the buffer: it passes alone
        with pytest.raises(BufferFull):
            await putter.put("t")
        proxy.release()
        assert await putter.flush(20)
        await putter.put("t", "x" * 400)
        await putter.put("t", "x" * 400)


async def test_the_deadline_is_a_total(far: AsyncQueue, proxy: Proxy) -> None:
    """Room that others take does not start it again (C-10)."""
    async with far.putter(limit=1, batch=1) as putter:
        proxy.hold()
        await putter.put("t")
        async with AsyncTogether() as together:
            start = time.monotonic()
            put = partial(putter.put_call, timeout=0.2)
            blocked = [together.start(put, Call("t")) for _ in range(3)]
            for started in blocked:
                with pytest.raises(BufferFull):
                    await started.result(PATIENCE)
            assert time.monotonic() - start < 20
        proxy.release()


# -- life ------------------------------------------------------------------------------------------


async def test_close_says_what_could_not_be_stored(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    reported: list[tuple[Exception, list[Put]]] = []
    await far.send("t")
    putter = far.putter(on_error=lambda error, puts: reported.append((error, puts)))
    proxy.refuse()
    handles = [await putter.put("t", i) for i in range(3)]
    left = await putter.close(timeout=0.1)
    assert [put.id for put in left] == [handle.id for handle in handles]
    assert [puts for _, puts in reported] == [left]
    assert isinstance(reported[0][0], RedisUnavailable)
    with pytest.raises(RedisUnavailable):
        await handles[0].wait_stored()
    assert (await near.enqueue_puts(left)).accepted == 3

    proxy.accept()
    with pytest.raises(LifecycleError, match="1 job for queue"):
        async with far.putter() as putter:
            await putter.put("t")
            await putter.flush()
            proxy.refuse()
            await putter.put("t")
            close = putter.close
            putter.close = lambda: close(0.05)  # type: ignore


async def test_close_does_not_wait_for_a_silent_server(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    """The batch may have been stored: it is returned, under the same ids."""
    putter = far.putter()
    await putter.put("t")
    await putter.flush()
    proxy.hold()
    with monitoring(near.settings.url or "") as monitor:
        handle = await putter.put("t")
        await aoutside(monitor.wait_for, "EVALSHA", handle.id)
    start = time.monotonic()
    left = await putter.close(timeout=0.05)
    assert time.monotonic() - start < 15  # the time-out for a reply
    assert [put.id for put in left] == [handle.id]
    assert (await near.enqueue_puts(left)).accepted == 0
    assert len(await waiting_ids(near)) == 2


async def test_close_lets_go_of_who_waits_for_room(far: AsyncQueue, proxy: Proxy) -> None:
    putter = far.putter(limit=1)
    proxy.hold()
    await putter.put("t")
    async with AsyncTogether() as together:
        blocked = together.start(putter.put, "t")
        assert not blocked.done()
        await putter.close(0.05)
        with pytest.raises(BufferClosed):
            await blocked.result(PATIENCE)


@pytest.mark.parametrize("after", [0, 3, 10])
async def test_a_lost_reply_doubles_nothing(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, after: int
) -> None:
    async with far.putter() as putter:
        await putter.put("t")
        assert await putter.flush(20)
        proxy.cut_reply(after)
        handles = [await putter.put("t", i) for i in range(20)]
        mine = await putter.put_call(Call("t", options=Options(id="mine")))
        assert await putter.flush(20)
        assert proxy.wait_cut()
        assert all(handle.created for handle in (*handles, mine))
    assert len(await waiting_ids(near)) == 22


async def test_an_outage_is_waited_for(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rqueue"):
        async with far.putter() as putter:
            handles = [await putter.put("t", i) for i in range(10)]
            proxy.refuse()
            handles += [await putter.put("t", i) for i in range(600)]
            assert not await putter.flush(0.3)
            assert putter.pending > 0
            proxy.accept()
            assert await putter.flush(20)
            assert putter.failed == 0
    assert await waiting_ids(near) == [handle.id for handle in handles]
    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "wait for Redis" in text]) == 1
    assert len([text for text in said if "go on" in text]) == 1


async def test_a_server_out_of_memory_is_waited_for(make_server: Any, queue_name: str) -> None:
    server = make_server(config={"maxmemory": "4mb"})
    async with AsyncQueue(queue_name, server.url) as queue, queue.putter(batch=10) as putter:
        handles = [await putter.put("t", "x" * 50_000) for _ in range(100)]
        assert not await putter.flush(1)
        assert putter.pending
        await queue.redis.config_set("maxmemory", "100mb")
        assert await putter.flush(20)
        assert await waiting_ids(queue) == [handle.id for handle in handles]


# -- forks and the end of the process --------------------------------------------------------------


async def test_an_error_listener_that_does_not_take_what_it_is_given(queue: AsyncQueue) -> None:
    """Else that would show when jobs are lost by it."""
    with pytest.raises(ConfigError, match=r"on_error: it takes \(error\), .* write def on_error\("):
        queue.putter(on_error=lambda error: None)  # type: ignore[arg-type, misc]
    async with queue.putter() as putter:
        with pytest.raises(ConfigError, match="on_error: 5 is no function"):
            putter.add_error_listener(5)  # type: ignore[arg-type]
