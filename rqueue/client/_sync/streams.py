# Generated from rqueue/client/_async/streams.py (`make generate`): do not edit.
"""Workflows whose members are drawn while they are enqueued."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from rqueue.client._sync.enqueuing import Enqueuing
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.errors import (
    NotConfirmed,
    QueueFull,
    RQueueError,
    ServerError,
    StreamSealed,
    WorkflowEnded,
)
from rqueue.model.ids import check_id, new_id
from rqueue.model.parents import MemberIds
from rqueue.protocol.commands.enqueue import Accepted
from rqueue.protocol.commands.streams import read_stream, seal
from rqueue.protocol.job_packer import Batch
from rqueue.protocol.stream_packing import StreamPacking
from rqueue.tasks.stream import Stream

__all__ = ["enqueue_stream"]

R = TypeVar("R")


def enqueue_stream(
    queue: Enqueuing, stream: Stream[R], id: str | None, spread: bool
) -> WorkflowHandle[R]:
    """Draw the members of a stream and store them, then seal it; see `Queue.enqueue_workflow`.
    Nothing is kept of what is stored."""
    root = new_id() if id is None else check_id(id)
    packing = StreamPacking(queue._packer, stream, root, spread=spread)
    if (_store(queue, packing.opening())).known:
        found = queue._run(read_stream(queue.keys, root))
        if not packing.goes_on(found):
            return _handle(queue, root, packing.sealed(found))
    try:
        for member in _drawn(stream):
            if (batch := packing.take(member)) is not None:
                _store(queue, batch)
        if (batch := packing.rest()) is not None:
            _store(queue, batch)
        queue._run(seal(queue.keys, root, packing.total))
    except (WorkflowEnded, StreamSealed):
        raise
    except Exception as error:
        if id is None and not isinstance(error, ServerError | NotConfirmed):
            _give_up(queue, root, error)
        else:
            error.add_note(packing.note())
        raise
    return _handle(queue, root, packing.total)


def _store(queue: Enqueuing, batch: Batch) -> Accepted:
    try:
        answer = queue._run(batch.call(queue.keys))
    except QueueFull as full:
        answer = queue._in_pieces(batch, full, None)
    queue._require_confirmed(answer.unconfirmed, [put.id for put, _ in batch.jobs])
    return answer


def _drawn(stream: Stream[Any]) -> Iterator[Any]:
    yield from stream.drawn()


def _give_up(queue: Enqueuing, root: str, error: Exception) -> None:
    """Nobody else knows the id of this stream: nobody goes on with it."""
    try:
        queue.cancel(root)
    except RQueueError as second:
        error.add_note(f"stream {root!r} stays open, it was not cancelled: {second}")


def _handle(queue: Enqueuing, root: str, total: int) -> WorkflowHandle[Any]:
    return WorkflowHandle(queue, root, MemberIds(root, total), [root])
