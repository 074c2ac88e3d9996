"""The asyncio half: each test is a coroutine, run in a loop of its own."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.sharded_queue import AsyncShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from tests.support.proxy import Proxy


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.funcargs["runner"].run(pyfuncitem.obj(**wanted))
    return True


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str, runner: asyncio.Runner) -> Iterator[AsyncQueue]:
    queue = AsyncQueue(queue_name, server.url)
    yield queue
    runner.run(queue.close())


@pytest.fixture
def consumer(queue: AsyncQueue, runner: asyncio.Runner) -> Iterator[AsyncConsumer]:
    """A registered consumer of `queue` with a wide window, which renews no lease."""
    consumer = queue.consumer(jobs=100, renew=False)
    runner.run(consumer.register())
    yield consumer
    runner.run(consumer.close())


@pytest.fixture
def far(proxy: Proxy, queue_name: str, runner: asyncio.Runner) -> Iterator[AsyncQueue]:
    """A queue that is reached through `proxy`."""
    queue = AsyncQueue(queue_name, proxy.url)
    yield queue
    runner.run(queue.close())


@pytest.fixture
def near(
    private_server: EmbeddedRedis, queue_name: str, runner: asyncio.Runner
) -> Iterator[AsyncQueue]:
    """The same queue, reached directly."""
    queue = AsyncQueue(queue_name, private_server.url)
    yield queue
    runner.run(queue.close())


@pytest.fixture
def putter(queue: AsyncQueue, runner: asyncio.Runner) -> Iterator[AsyncBackgroundPuts]:
    putter = queue.putter()
    yield putter
    runner.run(putter.close())


@pytest.fixture
def spread(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str, runner: asyncio.Runner
) -> Iterator[AsyncShardedQueue]:
    """Two shards: where the table is, and on `private_server`."""
    queue = AsyncShardedQueue(queue_name, server.url, shards=1)
    runner.run(queue.table())
    assert runner.run(queue.open(place=private_server.url, order=False)) == 1
    yield queue
    runner.run(queue.close())
