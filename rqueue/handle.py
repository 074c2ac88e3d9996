"""What enqueue returns: the job's id, and its result when it has one."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson
import redis

from rqueue import store
from rqueue.codec import decode_result
from rqueue.connection import execute, translated
from rqueue.errors import (
    JobCancelled,
    JobExpired,
    JobFailed,
    JobPurged,
    ResultError,
    ResultExpired,
    ResultNotReady,
    ResultTimeout,
    UnknownJob,
)
from rqueue.job import JobState, Record, parse_record
from rqueue.keys import QueueKeys

if TYPE_CHECKING:
    from rqueue.client import Queue

R = TypeVar("R")

NOT_KEPT = b"-"
"""Payload of a record whose result was not to be kept."""

WAIT_SLICE_S = 20.0
"""Seconds that one blocked command lasts: it bounds how long a lost connection stays unnoticed."""


def read_result(id: str, record: Record) -> Any:
    """The result in a record. Raises JobFailed, JobCancelled, JobPurged, JobExpired or
    ResultExpired."""
    if record.state is JobState.DONE:
        if record.payload == NOT_KEPT:
            raise ResultExpired(id)
        return decode_result(record.payload)
    raise failure_of(id, record)


def failure_of(id: str, record: Record) -> ResultError:
    """The error for a job that ended without a result."""
    if record.state is JobState.DEAD:
        cause = orjson.loads(record.payload) if record.payload else {}
        return JobFailed(
            id,
            type=cause.get("type", ""),
            remote_message=cause.get("message", ""),
            remote_traceback=cause.get("traceback", ""),
            attempts=cause.get("attempt", 0),
            kind=cause.get("kind", "exception"),
            worker=cause.get("worker", ""),
        )
    if record.state is JobState.CANCELLED:
        return JobCancelled(id)
    if record.state is JobState.PURGED:
        return JobPurged(id)
    return JobExpired(id)


class JobHandle(Generic[R]):
    """One job. `created` is False when a job of its id was known before: nothing was stored then.

    `handed_to`: the consumer that got it at once, "" if none.
    """

    __slots__ = ("_queue", "created", "handed_to", "id")

    def __init__(self, queue: Queue, id: str, *, created: bool = True, handed_to: str = "") -> None:
        self._queue = queue
        self.id = id
        self.created = created
        self.handed_to = handed_to

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._queue.name

    def state(self) -> JobState:
        """Where the job is now; UNKNOWN if it was never accepted or its record is gone."""
        state, record = _look(self._queue.redis, self._queue.keys, self.id, wait=False)
        return record.state if record else state

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result, at most `timeout` seconds (None: for ever; 0: do not wait).

        Waits without polling and consumes nothing: any number of callers may ask, again and again,
        while the record lasts. Raises ResultTimeout (or ResultNotReady, where timeout is 0) with
        the job's state, JobFailed with the remote traceback, JobCancelled, JobPurged, JobExpired,
        ResultExpired, UnknownJob, and the server errors.
        """
        value: R = await_record(self._queue.redis, self._queue.keys, self.id, timeout)
        return value

    def cancel(self, *, held: bool = True) -> bool:
        """Cancel the job; True if it had not ended. Where a worker runs it already (`held`), the
        worker is told and the outcome does not count any more."""
        return self._queue.cancel(self.id, held=held)

    def __repr__(self) -> str:
        return f"<job {self.id} of queue {self.queue!r}>"


def _look(
    client: redis.Redis, keys: QueueKeys, id: str, *, wait: bool
) -> tuple[JobState, Record | None]:
    seen = execute(client, store.await_result(keys, id, wait=wait), queue=keys.queue)
    if seen.state == "ended":
        return JobState.UNKNOWN, parse_record(seen.record)
    return JobState(seen.state), None


def _patience(client: redis.Redis) -> float:
    # a client of the user's may give up on replies sooner than a blocked command ends
    limit = client.connection_pool.connection_kwargs.get("socket_timeout")
    return math.inf if limit is None else limit * 0.8


def await_record(client: redis.Redis, keys: QueueKeys, id: str, timeout: float | None) -> Any:
    """Wait for a job's record and return the result in it; see `JobHandle.result`."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        state, record = _look(client, keys, id, wait=left > 0)
        if record is not None:
            return read_result(id, record)
        if state is JobState.UNKNOWN:
            raise UnknownJob(id, queue=keys.queue)
        if timeout is not None and timeout <= 0:
            raise ResultNotReady(id, state)
        if left <= 0:
            raise ResultTimeout(id, timeout or 0.0, state)
        # the list gets its one element when the job ends; moving it onto itself leaves it there
        # for the next one who asks, and Redis wakes every waiter in turn
        pause = max(0.001, min(left, WAIT_SLICE_S, _patience(client)))
        list_ = keys.result(id)
        with translated(client, queue=keys.queue):
            moved: Any = client.execute_command("BLMOVE", list_, list_, "LEFT", "LEFT", pause)
        if moved is not None:
            return read_result(id, parse_record(moved))
