"""Curator's simple queue (after TestSimpleDistributedQueue): the facade over `get` and a browse."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.simple_queue import AsyncSimpleQueue
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.simple_queue import SimpleQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueEmpty
from rqueue.model.envelope import Envelope
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.both import Together
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE


class OnALoop:
    """An `AsyncSimpleQueue`, each call run to its end on a loop of its own."""

    def __init__(self, name: str, url: str) -> None:
        self._runner = asyncio.Runner()
        self._queue = self._runner.run(self._open(name, url))

    async def _open(self, name: str, url: str) -> AsyncQueue:
        return AsyncQueue(name, url)

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self._runner.run(getattr(AsyncSimpleQueue(self._queue), name)(*given))

    def close(self) -> None:
        self._runner.run(self._queue.close())
        self._runner.close()


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture(params=("threads", "asyncio"))
def items(request: pytest.FixtureRequest, server: EmbeddedRedis, queue: Queue) -> Iterator[Any]:
    if request.param == "threads":
        yield SimpleQueue(queue)
        return
    made = OnALoop(queue.name, server.url)
    yield made
    made.close()


def test_CSI_01_what_is_offered_is_removed_by_any_client(
    items: Any, server: EmbeddedRedis, queue: Queue
) -> None:
    """C-27."""
    for value in ("Hello World", {"a": [1, 2.5, False]}, 0, ""):
        assert items.offer(value) is True
        assert items.remove() == value
        items.offer(value)
        with Queue(queue.name, server.url) as other:
            assert SimpleQueue(other).remove() == value
    with pytest.raises(ConfigError, match="None is no value"):
        items.offer(None)
    assert not queue.redis.exists(queue.keys.jobs)


def test_CSI_02_take_waits_for_an_offer(items: Any, server: EmbeddedRedis, queue: Queue) -> None:
    """C-27."""
    for value in ("first", "second", "third"):
        with monitoring(server.url) as monitor, Together() as together:
            taking = together.start(items.take)
            monitor.wait_for("BLPOP", queue.keys.base)
            SimpleQueue(queue).offer(value)
            assert taking.result(PATIENCE) == value
    assert items.poll(0.01) is None


def test_CSI_03_remove_on_an_empty_queue_raises(items: Any, queue: Queue) -> None:
    """C-27."""
    with pytest.raises(QueueEmpty, match=queue.name):
        items.remove()
    with pytest.raises(LookupError):
        items.element()
    assert (items.peek(), items.poll()) == (None, None)
    items.offer(1)
    assert items.remove() == 1


@pytest.mark.parametrize(("offers", "removes"), [(1, 0), (10, 2), (300, 299)])
def test_CSI_05_element_shows_the_head(items: Any, queue: Queue, offers: int, removes: int) -> None:
    """C-27."""
    values = list(range(offers))
    queue.enqueue_many([_call(value) for value in values])
    for value in values[:removes]:
        if removes < 10:
            assert items.remove() == value
        else:
            queue.job(f"i{value}").cancel()
    assert [items.element(), items.element(), items.peek()] == [removes] * 3
    assert queue.counts().ready == offers - removes


def _call(value: int) -> Any:
    return Call("rqueue.item", (value,), options=Options(id=f"i{value}"))


def test_CSI_07_a_waiting_taker_survives_an_empty_queue(
    server: EmbeddedRedis, queue: Queue
) -> None:
    """C-27: the keys of an empty queue vanish."""
    with Queue(queue.name, server.url) as other, Together() as together:
        taking = together.start(lambda: [SimpleQueue(other).take() for _ in range(10)])
        for value in range(10):
            SimpleQueue(queue).offer(value)
        assert taking.result(PATIENCE) == list(range(10))
    queue.send("another", [1])
    job = SimpleQueue(queue).take()
    assert isinstance(job, Envelope) and (job.task, job.args) == ("another", [1])
