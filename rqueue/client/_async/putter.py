"""Background puts: enqueue at once, stored in batches in the background (C-10 to C-14).

::

    async with queue.putter() as putter:
        for row in rows:
            await putter.put(import_row, row)     # goes on at once, with the job's handle
        await putter.flush()                      # True: every one of them is stored

A process that dies without warning loses what it had not stored yet: use `enqueue` where the
caller must know before it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.put_handle import AsyncPutHandle
from rqueue.client._async.put_shards import AsyncPutShards
from rqueue.errors import LifecycleError
from rqueue.model.expect import expect_number
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import Call, JobPacker, by_name, call_of
from rqueue.protocol.put_buffer import (
    BATCH,
    CLOSE_S,
    LIMIT,
    LIMIT_BYTES,
    LINGER_S,
    ErrorListener,
    PutBuffer,
    PutListeners,
)
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.request import JobRequest
from rqueue.text.numbers import many
from rqueue.transport.put_task import PutTask

__all__ = ["AsyncBackgroundPuts"]

P = ParamSpec("P")
R = TypeVar("R")

AsyncPutListener = Callable[[AsyncPutHandle[Any]], object]


class AsyncBackgroundPuts:
    """Puts jobs into one queue from the background. Made by `AsyncQueue.putter(...)`.

    `batch`: jobs that one call stores at most. `linger`: seconds that the first job of a batch
    waits for more. `limit`, `limit_bytes`: room of the buffer, in jobs and in bytes of envelopes.
    `timeout`: seconds that a put may wait in all while the buffer is full (None: as long as it
    takes), then BufferFull. `on_error`: see `add_error_listener`.

    Into a bounded queue whose producers wait, the jobs wait here for room there, with a warning in
    the log: `timeout` is then the longest that a put waits. Where the queue refuses what does not
    fit, the error listeners get it, with QueueFull.

    While Redis cannot be reached the jobs stay here and are sent again, in order, under the same
    ids. Of a queue that is spread over shards each job goes where it belongs, one without a key
    where its id says; while a shard cannot be reached, what was put behind its jobs waits.

    In asyncio a task of the loop stores them: close the putter before its loop ends, for nothing
    else does. In threads a thread does, and all threads may put: a forked child begins with an
    empty buffer (the parent stores what was there), and at the end of the interpreter (not of
    `os._exit`) the putter is closed.
    """

    def __init__(
        self,
        queue: AsyncEnqueuing,
        *,
        batch: int = BATCH,
        linger: float = LINGER_S,
        limit: int = LIMIT,
        limit_bytes: int = LIMIT_BYTES,
        timeout: float | None = None,
        on_error: ErrorListener | None = None,
    ) -> None:
        self.queue = queue
        expect_number("linger", linger, "a number of seconds")
        if timeout is not None:
            expect_number("timeout", timeout, "a number of seconds, or None")
        self.linger = linger
        self.timeout = timeout
        packer = JobPacker(queue.keys, queue.settings)
        self._buffer = PutBuffer(
            queue.keys, packer, batch=batch, limit=limit, limit_bytes=limit_bytes
        )
        self._buffer.apart = queue._shards is not None
        self._listeners = PutListeners(queue.name, on_error)
        self._engine = PutTask(
            queue.redis,
            self._buffer,
            self._listeners,
            AsyncPutShards(queue),
            keys=queue.keys,
            linger=linger,
            patience=queue.settings.command_timeout,
        )

    # -- put ---------------------------------------------------------------------------------------

    @overload
    async def put(
        self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncPutHandle[R]: ...
    @overload
    async def put(self, task: str, /, *args: Any, **kwargs: Any) -> AsyncPutHandle[Any]: ...
    async def put(
        self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> AsyncPutHandle[Any]:
        """Put one call of a task, given as the task or by name; goes on at once unless the buffer
        is full. Raises BadArguments, NotEncodable, BufferFull, BufferClosed."""
        if not isinstance(task, BoundTask):
            return await self._put(by_name(task, args, kwargs), self.timeout)
        return await self._put(task.request(task.defaults, args, kwargs), self.timeout)

    async def put_call(self, call: Call, *, timeout: float | None = None) -> AsyncPutHandle[Any]:
        """Put one call; with `timeout`, wait at most so many seconds in all (0: not at all)."""
        return await self._put(
            call_of(call).resolve(), self.timeout if timeout is None else timeout
        )

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(async_sender=...)`."""
        return self.queue.name

    async def enqueue_request(self, request: JobRequest) -> AsyncPutHandle[Any]:
        """Put what a task enqueues: `task.options(async_sender=putter).aenqueue(...)`. Raises
        LifecycleError for a task of another queue."""
        if request.queue not in ("", self.queue.name):
            raise LifecycleError(
                f"task '{request.task}' goes to queue '{request.queue}', this putter to "
                f"'{self.queue.name}'"
            )
        return await self._put(request, self.timeout)

    async def _put(self, request: JobRequest, timeout: float | None) -> AsyncPutHandle[Any]:
        handle: AsyncPutHandle[Any] = AsyncPutHandle(self.queue, self._engine)
        await self._engine.put(self._buffer.item(handle, request), timeout)
        return handle

    # -- listeners ---------------------------------------------------------------------------------

    def add_listener(self, listener: AsyncPutListener) -> None:
        """Call `listener(handle)` once for each job that is stored, in order, after it is (C-14).

        It is a plain function, called in the loop, or in the putter's thread outside its locks; an
        exception is logged. `flush` may return before the listeners of the last batch were called,
        `close` does not.
        """
        self._listeners.stored.append(listener)

    def add_error_listener(self, listener: ErrorListener) -> None:
        """Call `listener(error, puts)` with jobs that could not be stored, now or later.

        `AsyncQueue.enqueue_puts` takes such jobs. Without a listener they are logged. Raises
        ConfigError where it does not take the two.
        """
        self._listeners.add_failed(listener)

    # -- waiting -----------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Jobs that are neither stored nor refused."""
        return self._buffer.pending

    @property
    def failed(self) -> int:
        """Jobs that could not be stored so far."""
        return self._buffer.failed

    async def flush(self, timeout: float | None = None) -> bool:
        """Send now, and wait until every job put before is stored; False when `timeout` seconds
        passed (C-13). A job that was refused for good counts as finished: its handle and the error
        listeners have the reason."""
        return await self._engine.wait(self._buffer.added, timeout)

    async def close(self, timeout: float = CLOSE_S) -> list[Put]:
        """Take no more puts, and flush for at most `timeout` seconds.

        Returns the jobs that could not be stored in this time, which the error listeners get too:
        whether the last batch of them was stored may be unknown, so enqueue them under the ids that
        they have. A second close does nothing (C-02).
        """
        return await self._engine.close(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        left = await self.close()
        if left and error is None:
            raise LifecycleError(
                f"{many(len(left), 'job')} for queue '{self.queue.name}' could not be stored: "
                f"{self._engine.last_error}"
            )

    def __repr__(self) -> str:
        return f"<AsyncBackgroundPuts into {self.queue.name!r}: {self.pending} pending>"
