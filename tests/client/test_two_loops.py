"""An AsyncQueue in two event loops: refused with what to do where it is still open in the first."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from rqueue.client._async.queue import AsyncQueue, Call
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import LifecycleError
from rqueue.testing import in_memory
from rqueue.transport.task_connections import CALLS_MAX
from tests.support.redis_cluster import SmallCluster

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Python says of each connection whose loop has ended that nobody closed it: so it is."""

Body = Callable[[AsyncQueue], Awaitable[Any]]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What a loop left open is found by the test that left it."""
    yield
    gc.collect()


@pytest.fixture(params=["server", "cluster"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "server":
        server: EmbeddedRedis = request.getfixturevalue("server")
        yield server.url
    else:
        cluster: SmallCluster = request.getfixturevalue("redis_cluster")
        yield cluster.cluster_url


async def send(queue: AsyncQueue) -> Any:
    return await queue.send("t")


async def send_many(queue: AsyncQueue) -> Any:
    return await asyncio.gather(*(queue.send("t") for _ in range(3 * CALLS_MAX)))


async def wait_for_a_result(queue: AsyncQueue) -> Any:
    return await queue.job("never").result(timeout=0)


async def ask_counts(queue: AsyncQueue) -> Any:
    return await queue.counts()


@pytest.mark.parametrize("again", [send, send_many, wait_for_a_result, ask_counts])
def test_a_second_loop_is_told_what_to_do(url: str, queue_name: str, again: Body) -> None:
    queue = AsyncQueue(queue_name, url)
    asyncio.run(send(queue))  # type: ignore[arg-type]
    with pytest.raises(LifecycleError, match=r"loop that used it first, which has ended.*aqueue"):
        asyncio.run(again(queue))  # type: ignore[arg-type]
    asyncio.run(queue.close())


def test_a_queue_that_was_closed_is_used_by_the_next_loop(url: str, queue_name: str) -> None:
    queue = AsyncQueue(queue_name, url)

    async def once() -> int:
        async with queue:
            await send_many(queue)
            return (await queue.counts()).ready

    assert asyncio.run(once()) == 3 * CALLS_MAX
    assert asyncio.run(once()) == 6 * CALLS_MAX


def test_one_that_is_closed_late_is_used_by_the_next_loop(url: str, queue_name: str) -> None:
    queue = AsyncQueue(queue_name, url)
    asyncio.run(send(queue))
    asyncio.run(queue.close())  # what it closes went with its loop
    asyncio.run(send(queue))
    asyncio.run(queue.close())


def test_a_consumer_of_a_loop_that_ended(url: str, queue_name: str) -> None:
    queue = AsyncQueue(queue_name, url)

    async def begin() -> Any:
        consumer = queue.consumer(renew=False)
        await consumer.register()
        return consumer

    consumer = asyncio.run(begin())
    with pytest.raises(LifecycleError, match="which has ended"):
        asyncio.run(consumer.receive(timeout=0))
    asyncio.run(queue.close())


def test_a_putter_of_a_loop_that_ended(url: str, queue_name: str) -> None:
    queue = AsyncQueue(queue_name, url)

    async def begin() -> Any:
        putter = queue.putter()
        await putter.put_call(Call("t"))
        assert await putter.flush()
        return putter

    putter = asyncio.run(begin())
    with pytest.raises(LifecycleError, match="which has ended"):
        asyncio.run(putter.put_call(Call("t")))
    asyncio.run(queue.close())


def test_two_loops_at_once(url: str, queue_name: str) -> None:
    """Threads with a loop each: the second is refused though the first goes on."""
    queue = AsyncQueue(queue_name, url)
    met: list[BaseException] = []

    def other() -> None:
        try:
            asyncio.run(send(queue))
        except LifecycleError as error:
            met.append(error)

    async def main() -> None:
        async with queue:
            await send(queue)
            thread = threading.Thread(target=other)
            thread.start()
            await asyncio.to_thread(thread.join)
            assert (await queue.counts()).ready == 1

    asyncio.run(main())
    assert len(met) == 1 and "another one than the running one" in str(met[0])


def test_in_memory_a_queue_belongs_to_no_loop(server: EmbeddedRedis, queue_name: str) -> None:
    queue = AsyncQueue(queue_name, server.url)
    with in_memory():
        asyncio.run(send(queue))
        asyncio.run(send(queue))
    asyncio.run(send(queue))
    asyncio.run(queue.close())
