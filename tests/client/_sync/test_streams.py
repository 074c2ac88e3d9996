# Generated from tests/client/_async/test_streams.py (`make generate`): do not edit.
"""Streams of members as a client enqueues them, beside consumers that work meanwhile."""

from collections.abc import (
    Iterator,
)
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.errors import QueueFull, StreamSealed
from rqueue.protocol import stream_packing
from rqueue.tasks.stream import stream
from rqueue.tasks.workflow import Signature
from tests.support.workflows import double, plus

DONE = plus.si(1, 1)


def calls(count: int) -> Iterator[Signature[int]]:
    return (double.s(n) for n in range(count))


def die_behind(queue: Queue, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer of stream w dies behind so many members."""

    def dies() -> Iterator[Signature[int]]:
        yield from calls(count)
        raise KeyboardInterrupt

    monkeypatch.setattr(stream_packing, "LINGER_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        queue.enqueue_workflow(stream(dies(), DONE), id="w")


def work_off(queue: Queue, consumer: Consumer) -> list[str]:
    """Ack all that is ready; the names of the tasks, in the order of taking."""
    names = []
    while (job := consumer.receive(0)) is not None:
        names.append(queue.envelope(job).task)
        consumer.ack(job)
    return names


def test_the_callback_runs_behind_all_members(queue: Queue, consumer: Consumer) -> None:
    handle: Any = queue.enqueue_workflow(stream(calls(520), DONE), id="w")
    assert len(handle.ids) == 521
    names = work_off(queue, consumer)
    assert names == [double.name] * 520 + [plus.name]


def test_a_producer_that_died_goes_on_under_the_same_id(
    queue: Queue, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind(queue, 7, monkeypatch)
    assert work_off(queue, consumer) == [double.name] * 7  # and not what waits for them
    queue.enqueue_workflow(stream(calls(9), DONE), id="w")
    assert work_off(queue, consumer) == [double.name] * 2 + [plus.name]


def test_a_sealed_stream_is_not_drawn_again(queue: Queue) -> None:
    queue.enqueue_workflow(stream(calls(3), DONE), id="w")
    again = calls(4)
    handle: Any = queue.enqueue_workflow(stream(again, DONE), id="w")
    assert (len(handle.ids), len(list(again))) == (4, 4)


def test_fewer_members_than_are_there_are_refused(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind(queue, 7, monkeypatch)
    with pytest.raises(StreamSealed):
        queue.enqueue_workflow(stream(calls(4), DONE), id="w")


def test_a_bounded_queue_refuses_what_has_no_room_and_the_same_goes_on(
    queue: Queue, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_packing, "LINGER_S", 0.0)
    queue.configure(max_jobs=6)
    with pytest.raises(QueueFull):
        queue.enqueue_workflow(stream(calls(20), DONE), id="w")
    done: list[str] = []
    while plus.name not in done:
        done += work_off(queue, consumer)
        try:
            queue.enqueue_workflow(stream(calls(20), DONE), id="w")
        except QueueFull:
            assert done.count(double.name) < 20
        else:
            done += work_off(queue, consumer)
    assert done == [double.name] * 20 + [plus.name]
