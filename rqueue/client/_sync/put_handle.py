# Generated from rqueue/client/_async/put_handle.py (`make generate`): do not edit.
"""The handle of a background put: known before the job is stored."""

from __future__ import annotations

from time import monotonic
from typing import Any, TypeVar

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.errors import ResultTimeout
from rqueue.model.cancellation import Cancellation
from rqueue.transport.put_thread import PutThread

__all__ = ["PutHandle"]

R_co = TypeVar("R_co", covariant=True)

NOT_STORED = "not stored yet"


class PutHandle(JobHandle[R_co]):
    """The handle of a job that is, or will be, stored in the background.

    `created` is final once it is stored. `error`: why it could not be stored, if so. `state` is
    "unknown" until it is stored.
    """

    __slots__ = ("_engine", "error", "number")

    def __init__(self, queue: QueueCalls, engine: PutThread) -> None:
        self._queue = queue
        self._engine = engine
        self.id = ""
        self.created = True
        self.conflict = ""
        self.handed_to = ""
        self.error: Exception | None = None
        self.number = 0

    def _stored_as(self, other: JobHandle[Any], *, own: bool) -> None:
        """The job is in a shard, where `other` is its handle; own: its id was made here."""
        self._queue, self.id, self.conflict = other._queue, other.id, other.conflict
        self.created = other.created or (own and not other.conflict)
        self.handed_to = other.handed_to

    @property
    def stored(self) -> bool:
        """Whether the queue has the job for certain."""
        return self._engine.finished(self.number) and self.error is None

    def wait_stored(self, timeout: float | None = None) -> bool:
        """Wait until the job is stored; False when `timeout` seconds passed. Raises its `error`."""
        done = self._engine.wait(self.number, timeout)
        if self.error is not None:
            raise self.error
        return done

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, as `JobHandle.result`, and first for the job to be stored."""
        start = monotonic()
        if not self.wait_stored(timeout):
            raise ResultTimeout(self.id, timeout or 0.0, NOT_STORED)
        left = None if timeout is None else max(0.0, timeout - (monotonic() - start))
        value: Any = super().result(left)
        result: R_co = value
        return result

    def cancel(
        self,
        *,
        held: bool = True,
        running: bool = False,
        kill: bool = False,
        timeout: float | None = 0.0,
    ) -> Cancellation:
        """Cancel the job, as `JobHandle.cancel`, once it is stored."""
        self.wait_stored()
        return super().cancel(held=held, running=running, kill=kill, timeout=timeout)
