"""Two processes that make one id in the same millisecond: no job is dropped for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.envelope import unpack
from rqueue.model.ids import new_id
from rqueue.protocol import job_packer
from rqueue.tasks.options import Options
from tests.support.proxy import Proxy
from tests.support.pulling import pull

Say = Callable[..., None]


@pytest.fixture
def ids_are(monkeypatch: pytest.MonkeyPatch) -> Say:
    """The next ids that are made here; then others."""
    said: list[str] = []
    monkeypatch.setattr(job_packer, "new_id", lambda: said.pop(0) if said else new_id())
    return lambda *some: said.extend(some)


def arguments(consumer: Consumer, count: int) -> list[int]:
    return [unpack(job.body)[1][0] for job in pull(consumer, count)]


def test_enqueue(queue: Queue, consumer: Consumer, ids_are: Say) -> None:
    ids_are("twin", "twin")
    first, second = queue.enqueue("t", 1), queue.enqueue("t", 2)
    assert (first.id, first.created, second.created) == ("twin", True, True)
    assert second.id != "twin"
    assert arguments(consumer, 2) == [1, 2]


def test_enqueue_many(queue: Queue, consumer: Consumer, ids_are: Say) -> None:
    ids_are("twin", "a", "twin", "b", "a", "twin")
    queue.enqueue("t", 0)
    handles = queue.enqueue_many(Call("t", [number]) for number in range(1, 4))
    assert [handle.created for handle in handles] == [True] * 3
    assert len({handle.id for handle in handles} | {"twin"}) == 4
    assert sorted(arguments(consumer, 4)) == [0, 1, 2, 3]


def test_background_puts(queue: Queue, consumer: Consumer, ids_are: Say) -> None:
    queue.enqueue("t", 0)
    ids_are("twin", "x", "twin", "y")
    queue.enqueue("t", 1)
    reported = []
    with queue.putter() as putter:
        putter.add_listener(lambda handle: reported.append(handle.id))
        handles = [putter.put("t", number) for number in range(2, 5)]
        assert putter.flush(10)
    assert [handle.created for handle in handles] == [True] * 3
    assert sorted(reported) == sorted({handle.id for handle in handles})
    assert sorted(arguments(consumer, 5)) == [0, 1, 2, 3, 4]


def test_asyncio(server: EmbeddedRedis, queue: Queue, ids_are: Say) -> None:
    ids_are("twin", "twin", "x", "twin", "a")

    async def enqueue() -> list[AsyncJobHandle[Any]]:
        async with asyncio.timeout(20), AsyncQueue(queue.name, server.url) as other:
            one_by_one = [await other.enqueue("t", number) for number in (1, 2)]
            return one_by_one + await other.enqueue_many([Call("t", [3]), Call("t", [4])])

    made = asyncio.run(enqueue())
    assert all(handle.created for handle in made)
    assert len({handle.id for handle in made}) == 4
    assert queue.counts().ready == 4


def test_an_answer_that_was_lost_is_no_twin(far: Queue, near: Queue, proxy: Proxy) -> None:
    """The second try finds what the first one stored."""
    far.counts()
    proxy.cut_reply(0)
    handle = far.enqueue("t", 1)
    assert proxy.wait_cut()
    assert handle.created
    assert (near.counts().ready, near.job(handle.id).state().value) == (1, "ready")


def test_an_id_of_one_s_own_is_one_job(queue: Queue) -> None:

    made = [queue.send("t", [number], None, Options(id="mine")) for number in range(2)]
    assert [(handle.id, handle.created) for handle in made] == [("mine", True), ("mine", False)]
