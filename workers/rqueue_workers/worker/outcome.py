"""What became of one attempt: a success, a result, or what is to be done instead."""

from __future__ import annotations

from typing import NamedTuple

from rqueue.protocol.commands.settle import Retried

Ack = tuple[bytes, bytes, bytes, str, int, float, float]
"""id, value, head, task, acquired, started, finished: a success that says nothing, the first seven
fields of every outcome. Plain, because the hot loop makes one for each job."""


class Done(NamedTuple):
    """A success with a result. acquired: ms, Redis's clock. started, finished: by
    `time.monotonic()`. keep_ms: how long the result lasts, None = as the queue says. payload: the
    result as JSON."""

    id: bytes
    value: bytes
    head: bytes
    task: str
    acquired: int
    started: float
    finished: float
    keep_ms: int | None
    payload: bytes


class Unfinished(NamedTuple):
    """No success. outcome: retry, snooze, park or reject. error: what the history calls the cause.
    again: how the job comes back; None = it is rejected, and `cause` says why, as JSON."""

    id: bytes
    value: bytes
    head: bytes
    task: str
    acquired: int
    started: float
    finished: float
    outcome: str
    error: str
    again: Retried | None
    cause: bytes = b""


Outcome = Ack | Done | Unfinished
