"""Workflows whose members are drawn while they are enqueued."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.workflows import AsyncWorkflowHandle
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


async def enqueue_stream(
    queue: AsyncEnqueuing, stream: Stream[R], id: str | None, spread: bool
) -> AsyncWorkflowHandle[R]:
    """Draw the members of a stream and store them, then seal it; see `AsyncQueue.enqueue_workflow`.
    Nothing is kept of what is stored."""
    root = new_id() if id is None else check_id(id)
    packing = StreamPacking(queue._packer, stream, root, spread=spread)
    if (await _store(queue, packing.opening())).known:
        found = await queue._run(read_stream(queue.keys, root))
        if not packing.goes_on(found):
            return _handle(queue, root, packing.sealed(found))
    try:
        async for member in _drawn(stream):
            if (batch := packing.take(member)) is not None:
                await _store(queue, batch)
        if (batch := packing.rest()) is not None:
            await _store(queue, batch)
        await queue._run(seal(queue.keys, root, packing.total))
    except (WorkflowEnded, StreamSealed):
        raise
    except Exception as error:
        if id is None and not isinstance(error, ServerError | NotConfirmed):
            await _give_up(queue, root, error)
        else:
            error.add_note(packing.note())
        raise
    return _handle(queue, root, packing.total)


async def _store(queue: AsyncEnqueuing, batch: Batch) -> Accepted:
    try:
        answer = await queue._run(batch.call(queue.keys))
    except QueueFull as full:
        answer = await queue._in_pieces(batch, full, None)
    queue._require_confirmed(answer.unconfirmed, [put.id for put, _ in batch.jobs])
    return answer


async def _drawn(stream: Stream[Any]) -> AsyncIterator[Any]:
    if stream.of_asyncio:  # async
        async for member in stream.adrawn():  # async
            yield member  # async
        return  # async
    for member in stream.drawn():  # async
        yield member  # async
    # sync: yield from stream.drawn()


async def _give_up(queue: AsyncEnqueuing, root: str, error: Exception) -> None:
    """Nobody else knows the id of this stream: nobody goes on with it."""
    try:
        await queue.cancel(root)
    except RQueueError as second:
        error.add_note(f"stream {root!r} stays open, it was not cancelled: {second}")


def _handle(queue: AsyncEnqueuing, root: str, total: int) -> AsyncWorkflowHandle[Any]:
    return AsyncWorkflowHandle(queue, root, MemberIds(root, total), [root])
