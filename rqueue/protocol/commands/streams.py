"""Build the calls of jobs that wait for a stream of others."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_bytes


class StreamRead(NamedTuple):
    """A job that waits for a stream, as it is stored, b"" where it has ended; its record, b"" where
    there is none; how many of the stream have come, None where it does not wait."""

    value: bytes
    record: bytes
    joined: int | None


def _read_stream(reply: Any) -> StreamRead:
    _, value, record, joined = reply
    return StreamRead(value, record, int(joined) if joined else None)


def _read_nothing(_: Any) -> None:
    return None


def read_stream(keys: QueueKeys, id: str) -> ScriptCall[StreamRead]:
    """How far the stream is for which the job `id` waits."""
    return ScriptCall("read_stream", keys.meta, [raw_bytes(id)], _read_stream)


def seal(keys: QueueKeys, id: str, total: int) -> ScriptCall[None]:
    """The stream of those for which the job `id` waits has ended, with so many of them. Raises
    WorkflowEnded where it waits no more, and was not sealed; StreamSealed where another number has
    come."""
    return ScriptCall("seal", keys.meta, [raw_bytes(id), total], _read_nothing)
