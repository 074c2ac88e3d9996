"""What became of one attempt: a success, a result, or what is to be done instead."""

from __future__ import annotations

from typing import NamedTuple

from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.policies.refusals import ELSEWHERE

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
    """No success. outcome: retry, snooze, refuse, park or reject. error: what the history calls the
    cause. again: how the job comes back; None = it is rejected, and `cause` says why, as JSON."""

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

PUT_OFF_MS = 5000
"""How long a job waits that was refused where a queue cannot note it."""


def refuses(row: Unfinished) -> bool:
    """Whether it leaves the job to other consumers."""
    return row.again is not None and row.again.place == ELSEWHERE


def put_off(row: Unfinished) -> Unfinished:
    """A refusal as a snooze; other outcomes as they are."""
    if row.again is None or not refuses(row):
        return row
    again = row.again._replace(place="head", delay_ms=PUT_OFF_MS)
    return row._replace(outcome="snooze", again=again)
