"""What became of a job, how one waits for that, and what its record says: no I/O.

The sync and the asyncio handle do the same: ask with `ResultWait.ask`, and hear the answers with
`heard`; where that is None, again. The call and the command that blocks are sent at once: what was
asked leaves an answer to the second. What fails meanwhile goes to `pause`, which says when to begin
anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic
from typing import Any, Literal, NamedTuple

import orjson

from rqueue.errors import (
    JobCancelled,
    JobDisplaced,
    JobExpired,
    JobFailed,
    JobMoved,
    JobPurged,
    ProducerLost,
    RedisReadOnly,
    ResultError,
    ResultExpired,
    ResultNotReady,
    ResultTimeout,
    ServerError,
    UnknownJob,
)
from rqueue.logs import logger
from rqueue.model.causes import EXPIRED, why_dead
from rqueue.model.envelope import Record, decode_result, parse_record
from rqueue.model.expect import expect_number
from rqueue.model.job import JobState
from rqueue.protocol.call import ScriptCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.waiting import error_said, why_it_waits
from rqueue.tasks.context import current_job

__all__ = [
    "Awaited",
    "ResultWait",
    "await_result",
    "failure_of",
    "merged_into",
    "move_said",
    "read_result",
    "read_state",
]

log = logger("rqueue")

NOT_KEPT = b"-"
"""Payload of a record whose result was not to be kept."""

WAIT_SLICE_S = 20.0
"""Seconds that one blocked command lasts: it bounds how long a lost connection stays unnoticed."""

SHORTEST_WAIT_S = 0.002
"""Seconds that a blocked command lasts at least: Redis 6.2 reads 0.001 as 0, that is for ever."""


class Awaited(NamedTuple):
    """state: ended (with the record), ready, scheduled, parked, held, unknown; with `wait` only
    "live". Of a job that has not ended, without it: when it is due (ms; 0 = not
    scheduled), whether its queue is paused, how many consumers the queue has, browsers apart, and
    how many of these are alive, by their leases; who holds it, when the lease of that one ends (ms;
    0 = nobody does), and since when it runs there (ms; 0 = not known); how many of its attempts
    failed, and the error of the last one as JSON.
    """

    now: int
    state: str
    record: bytes
    due_ms: int = 0
    paused: bool = False
    consumers: int = 0
    alive: int = 0
    holder: str = ""
    lease_ends_ms: float = 0
    began_ms: int = 0
    attempts: int = 0
    error: bytes = b""


def _read_awaited(reply: Any) -> Awaited:
    state = reply[1]  # `text`, written out on the way of every call
    state = state.decode() if isinstance(state, bytes) else state
    if len(reply) == 3:
        return Awaited(reply[0], state, reply[2])
    now, _, record, due, paused, consumers, alive, holder, until, began, attempts, error = reply
    return Awaited(
        now,
        state,
        record,
        int(due),
        bool(paused),
        consumers,
        alive,
        text(holder),
        float(until),
        began,
        attempts,
        error,
    )


def await_result(keys: QueueKeys, id: str, *, wait: bool) -> ScriptCall[Awaited]:
    """What became of a job; with `wait`, its record will be put into `keys.result(id)`."""
    return ScriptCall("await_result", keys.meta, [id, "1" if wait else "0"], _read_awaited)


def read_result(id: str, kept: bytes) -> Any:
    """The result in a record, as it is kept. Raises JobFailed, JobCancelled, JobPurged, JobExpired,
    JobDisplaced, JobMoved or ResultExpired."""
    record = parse_record(kept)
    if record.state is JobState.DONE:
        if record.payload == NOT_KEPT:
            raise ResultExpired(id)
        return decode_result(record.payload)
    raise failure_of(id, record)


def failure_of(id: str, record: Record) -> ResultError:
    """The error for a job that ended without a result."""
    if record.state is JobState.DEAD:
        cause = orjson.loads(record.payload) if record.payload else {}
        if cause.get("kind") == EXPIRED:
            return JobExpired(id)
        return JobFailed(
            id,
            type=cause.get("type", ""),
            remote_message=cause.get("message", ""),
            remote_traceback=cause.get("traceback", ""),
            attempts=cause.get("attempt", 0),
            kind=cause.get("kind", "exception"),
            worker=cause.get("worker", ""),
            why=why_dead(cause),
        )
    if record.state is JobState.CANCELLED:
        cause = orjson.loads(record.payload) if record.payload else {}
        said = cause.get("message")
        kind = ProducerLost if cause.get("type") == "ProducerLost" else JobCancelled
        return kind(id, reason=f"was cancelled: {said}" if said else "was cancelled")
    if record.state is JobState.PURGED:
        return JobPurged(id)
    if record.state is JobState.DISPLACED:
        return JobDisplaced(id)
    if record.state is JobState.MOVED:
        return JobMoved(id, to=move_said(record, "to"))
    return JobExpired(id)


def merged_into(kept: bytes) -> str:
    """The id of the job as which a unique job goes on that came by way of an outbox; "" if the
    record says nothing of one."""
    return move_said(parse_record(kept), "as") if kept[:1] == b"M" else ""


def move_said(record: Record, what: Literal["to", "as"]) -> str:
    """Of a job that was moved, the queue to which people did so, or the job into which it is
    merged; "" if its record says neither."""
    try:
        said = orjson.loads(record.payload or b"{}")
    except orjson.JSONDecodeError:
        return ""
    found = said.get(what) if isinstance(said, dict) else ""
    return found if isinstance(found, str) else ""


def read_state(seen: Awaited) -> JobState:
    """Where a job is, from the answer of `await_result`."""
    if seen.state == "ended":
        return parse_record(seen.record).state
    return JobState(seen.state)


class ResultWait:
    """One caller's wait for one job's record, at most `timeout` seconds (None: for ever; 0: no
    wait). `patience`: seconds that a reply may take, None = for ever; a blocked command lasts well
    below. `server`: names the server that is asked, for messages."""

    __slots__ = (
        "_deadline",
        "_keys",
        "_list",
        "_patience",
        "_read_only",
        "_server",
        "_slice",
        "_told",
        "id",
        "timeout",
    )

    def __init__(
        self,
        keys: QueueKeys,
        id: str,
        timeout: float | None,
        patience: float | None = None,
        server: Callable[[], str] = str,
    ) -> None:
        # looked at once more only where it is none of the usual, or NaN
        if timeout is not None and (type(timeout) not in (float, int) or timeout != timeout):
            expect_number("timeout", timeout, "a number of seconds, or None", least=-math.inf)
        self.id = id
        self.timeout = timeout
        self._list = keys.results + id
        self._keys = keys
        self._server = server
        self._slice = WAIT_SLICE_S if patience is None else min(WAIT_SLICE_S, patience * 0.6)
        self._patience: Patience | None = None
        self._told = False
        self._read_only: RedisReadOnly | None = None
        self._deadline = math.inf if timeout is None else monotonic() + timeout

    def at(self, keys: QueueKeys) -> None:
        """The job is in this queue, a shard of the one that was asked: begin anew there."""
        self._keys = keys
        self._list = keys.result(self.id)

    def goes_on_as(self, id: str) -> None:
        """The job is merged into this one: begin anew there."""
        self.id = id
        self._list = self._keys.result(id)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._deadline - monotonic()

    def ask(self) -> tuple[ScriptCall[Awaited], tuple[str | float, ...]]:
        """The call that looks at the job and has its record announced; and the command that blocks
        until the job ends, or for a slice of time, () where one may not wait.

        The list gets its one element when the job ends. A waiter moves it onto itself, which leaves
        it for the next one, and Redis wakes every waiter in turn.
        """
        left = self._deadline - monotonic()
        call = await_result(self._keys, self.id, wait=left > 0)
        if left <= 0:
            return call, ()
        pause = max(SHORTEST_WAIT_S, min(left, self._slice))
        return call, ("BLMOVE", self._list, self._list, "LEFT", "LEFT", pause)

    def heard(self, seen: Awaited, moved: bytes | Exception | None = None) -> bytes | None:
        """The record as it is kept, or None: go on waiting. moved: the answer to the command that
        blocks, where it was sent. Raises UnknownJob, ResultNotReady, ResultTimeout; RedisReadOnly
        where the time ends on a server that takes no writes: what it knows may be old; and the
        server errors."""
        if seen.state == "ended":
            return seen.record
        if seen.state == "live":
            self._read_only = None
            if isinstance(moved, RedisReadOnly):
                return None  # it became a replica: the next call learns where to go
            if isinstance(moved, Exception):
                raise moved
            return moved
        state = JobState(seen.state)
        if state is JobState.UNKNOWN:
            raise UnknownJob(self.id, queue=self._keys.queue)
        if self.timeout is not None and self.left <= 0:
            if self._read_only is not None:
                raise self._read_only
            reason = why_it_waits(
                state,
                self._keys.queue,
                paused=seen.paused,
                consumers=seen.alive,
                lapsed=seen.consumers - seen.alive,
                due_in_ms=seen.due_ms - seen.now,
                failed=error_said(seen.attempts, seen.error),
                holder=seen.holder,
                lapsed_ms=seen.now - seen.lease_ends_ms if seen.holder else 0,
                runs_ms=seen.now - seen.began_ms if seen.began_ms else 0,
                waiter=self._waiter(),
            )
            if self.timeout <= 0:
                raise ResultNotReady(self.id, state, reason)
            raise ResultTimeout(self.id, self.timeout, state, reason, url=self._server())
        return None

    def _waiter(self) -> str:
        """The job whose code waits, where it is one of the same queue: it holds a worker of it."""
        job = current_job()
        return job.id if job is not None and job.queue == self._keys.queue else ""

    def pause(self, error: ServerError) -> float:
        """Seconds until one may ask anew after a failure: an outage is waited for until the
        deadline. Raises the server error where no time is left, or waiting is of no use."""
        if self._patience is None:
            self._patience = Patience()
        pause = self._patience.pause(error, self.left)
        self._read_only = error if isinstance(error, RedisReadOnly) else None
        if self.timeout is None and not self._told and self._patience.tried:
            self._told = True  # else nothing would say why it takes so long
            log.warning("Redis cannot be used: %s; the wait for job %s goes on", error, self.id)
        return pause
