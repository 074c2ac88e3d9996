"""The handles of background puts: known before the job is stored."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._sync.job_handle import JobHandle
from rqueue.errors import ResultTimeout

if TYPE_CHECKING:
    from rqueue.client._async.queue import AsyncQueue
    from rqueue.client._sync.queue import Queue

__all__ = ["AsyncPutHandle", "PutHandle"]

R_co = TypeVar("R_co", covariant=True)

NOT_STORED = "not stored yet"


class _Putter(Protocol):
    def _finished(self, number: int) -> bool: ...
    def _await(self, number: int, timeout: float | None) -> bool: ...


class _AsyncPutter(Protocol):
    def _finished(self, number: int) -> bool: ...
    async def _await(self, number: int, timeout: float | None) -> bool: ...


class PutHandle(JobHandle[R_co]):
    """The handle of a job that is, or will be, stored in the background.

    `created` is final once it is stored. `error`: why it could not be stored, if so. `state` is
    "unknown" until it is stored.
    """

    __slots__ = ("_putter", "error", "number")

    def __init__(self, queue: Queue, putter: _Putter) -> None:
        self._queue = queue
        self._putter = putter
        self.id = ""
        self.created = True
        self.handed_to = ""
        self.error: Exception | None = None
        self.number = 0

    @property
    def stored(self) -> bool:
        """Whether the queue has the job for certain."""
        return self._putter._finished(self.number) and self.error is None

    def wait_stored(self, timeout: float | None = None) -> bool:
        """Wait until the job is stored; False when `timeout` seconds passed. Raises its `error`."""
        done = self._putter._await(self.number, timeout)
        if self.error is not None:
            raise self.error
        return done

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, as `JobHandle.result`, and first for the job to be stored."""
        start = monotonic()
        if not self.wait_stored(timeout):
            raise ResultTimeout(self.id, timeout or 0.0, NOT_STORED)
        return super().result(_rest(timeout, start))

    def cancel(self, *, held: bool = True) -> bool:
        """Cancel the job, as `JobHandle.cancel`, once it is stored."""
        self.wait_stored()
        return super().cancel(held=held)


class AsyncPutHandle(AsyncJobHandle[R_co]):
    """The same for asyncio."""

    __slots__ = ("_putter", "error", "number")

    def __init__(self, queue: AsyncQueue, putter: _AsyncPutter) -> None:
        self._queue = queue
        self._putter = putter
        self.id = ""
        self.created = True
        self.handed_to = ""
        self.error: Exception | None = None
        self.number = 0

    @property
    def stored(self) -> bool:
        """Whether the queue has the job for certain."""
        return self._putter._finished(self.number) and self.error is None

    async def wait_stored(self, timeout: float | None = None) -> bool:
        """Wait until the job is stored; False when `timeout` seconds passed. Raises its `error`."""
        done = await self._putter._await(self.number, timeout)
        if self.error is not None:
            raise self.error
        return done

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, and first for the job to be stored."""
        start = monotonic()
        if not await self.wait_stored(timeout):
            raise ResultTimeout(self.id, timeout or 0.0, NOT_STORED)
        value: Any = await super().result(_rest(timeout, start))
        result: R_co = value
        return result

    async def cancel(self, *, held: bool = True) -> bool:
        """Cancel the job once it is stored."""
        await self.wait_stored()
        return await super().cancel(held=held)


def _rest(timeout: float | None, start: float) -> float | None:
    return None if timeout is None else max(0.0, timeout - (monotonic() - start))
