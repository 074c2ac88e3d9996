"""Background puts for asyncio; see `rqueue.client._sync.putter`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client.put_handle import AsyncPutHandle
from rqueue.errors import BufferClosed, BufferFull, LifecycleError, RedisUnavailable
from rqueue.logs import logger
from rqueue.model.expect import expect_number
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import Call, Packer, call_of
from rqueue.protocol.put_buffer import (
    BATCH,
    CLOSE_S,
    LIMIT,
    LIMIT_BYTES,
    LINGER_S,
    ErrorListener,
    PutBuffer,
    PutListeners,
    backoff,
)
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import Options
from rqueue.text.numbers import many
from rqueue.transport.async_connection import AsyncConnection, end

if TYPE_CHECKING:
    from rqueue.client._async.queue import AsyncQueue

__all__ = ["AsyncBackgroundPuts"]

P = ParamSpec("P")
R = TypeVar("R")

AsyncPutListener = Callable[[AsyncPutHandle[Any]], object]

log = logger("rqueue")


class AsyncBackgroundPuts:
    """Puts jobs into one queue from a task of this loop. Made by `AsyncQueue.putter(...)`.

    Options as for `rqueue.client._sync.putter.BackgroundPuts`. While nothing is to be stored there
    is no task. Close it before its loop ends: nobody else can.
    """

    def __init__(
        self,
        queue: AsyncQueue,
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
        packer = Packer(queue.keys, queue.settings)
        self._box = PutBuffer(queue.keys, packer, batch=batch, limit=limit, limit_bytes=limit_bytes)
        self._listeners = PutListeners(queue.name, on_error)
        self._connection: AsyncConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()  # replaced each time that jobs are stored, or refused
        self._urgent = asyncio.Event()  # do not linger
        self._hurry = 0
        self._last_error: Exception | None = None

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
        return await self.put_call(Call(task, args, kwargs))

    async def put_call(self, call: Call, *, timeout: float | None = None) -> AsyncPutHandle[Any]:
        """Put one call; with `timeout`, wait at most so many seconds in all (0: not at all)."""
        return await self._put(
            *call_of(call).resolve(), self.timeout if timeout is None else timeout
        )

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(async_sender=...)`."""
        return self.queue.name

    async def enqueue_task(
        self,
        queue: str,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> AsyncPutHandle[Any]:
        """Put what a task enqueues: `task.options(async_sender=putter).aenqueue(...)`."""
        if queue != self.queue.name:
            raise LifecycleError(
                f"task '{task}' goes to queue '{queue}', this putter to '{self.queue.name}'"
            )
        return await self._put(task, args, kwargs, options, parameters, self.timeout)

    async def _put(
        self,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
        timeout: float | None,
    ) -> AsyncPutHandle[Any]:
        box = self._box
        handle: AsyncPutHandle[Any] = AsyncPutHandle(self.queue, self)
        item = box.item(handle, task, args, kwargs, options, parameters)
        if box.closed:
            raise BufferClosed(self.queue.name)
        if not box.has_room(len(item.body)):
            await self._block(len(item.body), timeout)
        if box.add(item) >= box.batch:
            self._urgent.set()
        self._start()
        return handle

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="rqueue-puts")

    async def _block(self, size: int, timeout: float | None) -> None:
        if asyncio.current_task() is self._task:
            return
        box = self._box
        deadline = None if timeout is None else monotonic() + timeout
        while not box.has_room(size):
            self._hurry_to(box.added)
            if not await self._move(deadline):
                raise BufferFull(self.queue.name, box.limit, timeout or 0.0)
            if box.closed:
                raise BufferClosed(self.queue.name)

    # -- listeners ---------------------------------------------------------------------------------

    def add_listener(self, listener: AsyncPutListener) -> None:
        """Call `listener(handle)` once for each job that is stored, in order, after it is (C-14).
        It is a plain function, called in the loop; an exception is logged."""
        self._listeners.stored.append(listener)

    def add_error_listener(self, listener: ErrorListener) -> None:
        """Call `listener(error, puts)` with jobs that could not be stored, now or later."""
        self._listeners.failed.append(listener)

    # -- waiting -----------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Jobs that are neither stored nor refused."""
        return self._box.pending

    @property
    def failed(self) -> int:
        """Jobs that could not be stored so far."""
        return self._box.failed

    def _finished(self, number: int) -> bool:
        return number <= self._box.finished

    async def _await(self, number: int, timeout: float | None) -> bool:
        deadline = None if timeout is None else monotonic() + timeout
        self._hurry_to(number)
        while not self._finished(number):
            if not await self._move(deadline):
                return False
        return True

    async def _move(self, deadline: float | None) -> bool:
        """Wait until something is stored or refused; False when it is too late."""
        moved = self._moved
        left = None if deadline is None else deadline - monotonic()
        if left is not None and left <= 0:
            return False
        try:
            async with asyncio.timeout(left):
                await moved.wait()
        except TimeoutError:
            return False
        return True

    def _hurry_to(self, number: int) -> None:
        if number > self._hurry:
            self._hurry = number
            self._urgent.set()
        if self._box.pending:
            self._start()

    def _tell_moved(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def flush(self, timeout: float | None = None) -> bool:
        """Send now, and wait until every job put before is stored; as `BackgroundPuts.flush`."""
        return await self._await(self._box.added, timeout)

    async def close(self, timeout: float = CLOSE_S) -> list[Put]:
        """Take no more puts, and flush for at most `timeout` seconds; returns what could not be
        stored, as `BackgroundPuts.close`."""
        box = self._box
        if box.closed:
            return []
        box.closed = True
        self._tell_moved()
        done = await self._await(box.added, timeout)
        task = self._task
        if task is not None:
            if done:
                await asyncio.wait({task})
            else:
                await end(task)
        error = self._last_error or BufferClosed(self.queue.name)
        left = [] if done else box.give_up(error)
        self._tell_moved()
        if self._connection is not None:
            await self._connection.close()
        return self._listeners.tell_failed(error, left)

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
                f"{self._last_error}"
            )

    def __repr__(self) -> str:
        return f"<AsyncBackgroundPuts into {self.queue.name!r}: {self.pending} pending>"

    # -- the task ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        box = self._box
        try:
            while box.waiting or box.sending:
                if not box.closed and len(box.waiting) < box.batch and self._hurry <= box.finished:
                    await self._linger()
                self._urgent.clear()
                box.next_batch()
                await self._store()
        finally:
            self._task = None

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(self.linger):
                await self._urgent.wait()
        except TimeoutError:
            pass  # no more jobs came: send what is there

    async def _store(self) -> None:
        """Store the batch, however long that takes; refuse what cannot be stored."""
        box, attempt = self._box, 0
        if self._connection is None:
            self._connection = AsyncConnection(
                self.queue.redis, self.queue.settings.command_timeout
            )
        call = box.call()
        while True:
            try:
                accepted = await self._connection.run(call, queue=self.queue.name)
            except RedisUnavailable as error:
                attempt += 1
                if attempt == 1:
                    log.warning("puts into queue %s wait for Redis: %s", self.queue.name, error)
                self._last_error = error
                box.interrupted(error)
                await asyncio.sleep(backoff(attempt))
            except Exception as error:
                self._last_error = reason = box.reason(error)
                refused = box.refuse(reason)
                self._tell_moved()
                self._listeners.tell_failed(reason, refused)
                return
            else:
                break
        if attempt:
            log.warning("puts into queue %s go on", self.queue.name)
        stored = box.confirm(accepted)
        self._last_error = None
        self._tell_moved()
        self._listeners.tell(stored)
