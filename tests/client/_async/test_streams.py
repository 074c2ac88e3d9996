"""Streams of members as a client enqueues them, beside consumers that work meanwhile."""

from collections.abc import (
    AsyncIterator,  # async
    Iterator,
)
from typing import Any

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import QueueFull, StreamSealed
from rqueue.protocol import stream_packing
from rqueue.tasks.stream import stream
from rqueue.tasks.workflow import Signature
from tests.support.workflows import double, plus

DONE = plus.si(1, 1)


def calls(count: int) -> Iterator[Signature[int]]:
    return (double.s(n) for n in range(count))


async def slow_calls(count: int) -> AsyncIterator[Signature[int]]:  # async
    for call in calls(count):  # async
        yield call  # async


async def die_behind(queue: AsyncQueue, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer of stream w dies behind so many members."""

    def dies() -> Iterator[Signature[int]]:
        yield from calls(count)
        raise KeyboardInterrupt

    monkeypatch.setattr(stream_packing, "LINGER_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        await queue.enqueue_workflow(stream(dies(), DONE), id="w")


async def work_off(queue: AsyncQueue, consumer: AsyncConsumer) -> list[str]:
    """Ack all that is ready; the names of the tasks, in the order of taking."""
    names = []
    while (job := await consumer.receive(0)) is not None:
        names.append(queue.envelope(job).task)
        await consumer.ack(job)
    return names


async def test_the_callback_runs_behind_all_members(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    handle: Any = await queue.enqueue_workflow(stream(calls(520), DONE), id="w")
    assert len(handle.ids) == 521
    names = await work_off(queue, consumer)
    assert names == [double.name] * 520 + [plus.name]


async def test_async_members(queue: AsyncQueue, consumer: AsyncConsumer) -> None:  # async
    await queue.enqueue_workflow(stream(slow_calls(300), DONE))  # async
    assert len(await work_off(queue, consumer)) == 301  # async


async def test_a_producer_that_died_goes_on_under_the_same_id(
    queue: AsyncQueue, consumer: AsyncConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await die_behind(queue, 7, monkeypatch)
    assert await work_off(queue, consumer) == [double.name] * 7  # and not what waits for them
    await queue.enqueue_workflow(stream(calls(9), DONE), id="w")
    assert await work_off(queue, consumer) == [double.name] * 2 + [plus.name]


async def test_a_sealed_stream_is_not_drawn_again(queue: AsyncQueue) -> None:
    await queue.enqueue_workflow(stream(calls(3), DONE), id="w")
    again = calls(4)
    handle: Any = await queue.enqueue_workflow(stream(again, DONE), id="w")
    assert (len(handle.ids), len(list(again))) == (4, 4)


async def test_fewer_members_than_are_there_are_refused(
    queue: AsyncQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await die_behind(queue, 7, monkeypatch)
    with pytest.raises(StreamSealed):
        await queue.enqueue_workflow(stream(calls(4), DONE), id="w")


async def test_a_bounded_queue_refuses_what_has_no_room_and_the_same_goes_on(
    queue: AsyncQueue, consumer: AsyncConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_packing, "LINGER_S", 0.0)
    await queue.configure(max_jobs=6)
    with pytest.raises(QueueFull):
        await queue.enqueue_workflow(stream(calls(20), DONE), id="w")
    done: list[str] = []
    while plus.name not in done:
        done += await work_off(queue, consumer)
        try:
            await queue.enqueue_workflow(stream(calls(20), DONE), id="w")
        except QueueFull:
            assert done.count(double.name) < 20
        else:
            done += await work_off(queue, consumer)
    assert done == [double.name] * 20 + [plus.name]
