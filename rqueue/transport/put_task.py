"""The engine of background puts for asyncio: a task of the loop that stores what is put.

`rqueue.transport.put_thread` is the same with a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rqueue.errors import BufferClosed, BufferFull, QueueFull, QueueSharded
from rqueue.logs import logger
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.put_buffer import Item, PutBuffer, PutListeners, Refused, backoff
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_routed_connection import async_connection_for
from rqueue.transport.home_loop import HomeLoop

if TYPE_CHECKING:
    import redis.asyncio

log = logger("rqueue")


class PutSpread(Protocol):
    """Stores batches in the shards of a queue that is spread."""

    async def store(self, items: Sequence[Item]) -> Mapping[int, Exception]:
        """Store what is left of a batch; returns why jobs of it are refused, by their places.
        Raises what passes by itself: then the same batch is to be stored again."""


Answer = Accepted | Mapping[int, Exception]
"""What came of a batch in one queue, or in the shards of one."""


class PutTask:
    """Stores what is put into `buffer`, in batches, over one connection like those of `client`;
    where the queue is spread, by `spread`.

    keys: of the queue. linger: seconds that the first job of a batch waits for more. patience:
    seconds that a reply may take. While nothing is to be stored there is no task.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        buffer: PutBuffer,
        listeners: PutListeners,
        spread: PutSpread,
        *,
        keys: QueueKeys,
        linger: float,
        patience: float | None,
    ) -> None:
        self._client = client
        self._buffer = buffer
        self._listeners = listeners
        self._spread = spread
        self._keys = keys
        self._queue = keys.queue
        self._linger_s = linger
        self._patience = patience
        self._connection: AsyncConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()  # replaced each time that jobs are stored, or refused
        self._urgent = asyncio.Event()  # do not linger
        self._home = HomeLoop()
        self._hurry = 0  # send without lingering, up to this number
        self.last_error: Exception | None = None

    async def put(self, item: Item, timeout: float | None) -> None:
        """Add a job; while the buffer is full, wait at most `timeout` seconds in all. Raises
        BufferFull, BufferClosed, LifecycleError in another loop."""
        self._home.enter()
        buffer = self._buffer
        if buffer.closed:
            raise BufferClosed(self._queue)
        if not buffer.has_room(len(item.body)):
            await self._block(len(item.body), timeout)
        if buffer.add(item) >= buffer.batch:
            self._urgent.set()
        if self._task is None:
            self._start()

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="rqueue-puts")

    async def _block(self, size: int, timeout: float | None) -> None:
        if asyncio.current_task() is self._task:
            return  # a put listener that puts: it cannot wait for itself
        buffer = self._buffer
        deadline = None if timeout is None else monotonic() + timeout
        while not buffer.has_room(size):
            self._hurry_to(buffer.added)
            if not await self._wait_moved(deadline):
                raise BufferFull(self._queue, buffer.limit, timeout or 0.0)
            if buffer.closed:
                raise BufferClosed(self._queue)

    def finished(self, number: int) -> bool:
        """Whether the job of this number is stored or refused."""
        return number <= self._buffer.finished

    async def wait(self, number: int, timeout: float | None) -> bool:
        """Send now, and wait until so many jobs are stored or refused; False when `timeout` seconds
        passed. Raises LifecycleError in another loop."""
        self._home.enter()
        deadline = None if timeout is None else monotonic() + timeout
        self._hurry_to(number)
        while not self.finished(number):
            if not await self._wait_moved(deadline):
                return False
        return True

    async def _wait_moved(self, deadline: float | None) -> bool:
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
        if self._buffer.pending and self._task is None:
            self._start()

    def _notify_moved(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def close(self, timeout: float) -> list[Put]:
        """Take no more jobs, store what is there for at most `timeout` seconds, and end the task;
        returns what could not be stored."""
        buffer = self._buffer
        if buffer.closed:
            return []
        buffer.closed = True
        self._notify_moved()
        done = await self.wait(buffer.added, timeout)
        task = self._task
        if task is not None:
            if done:
                await asyncio.wait({task})
            else:
                await end(task)
        error = self.last_error or BufferClosed(self._queue)
        left = [] if done else buffer.give_up(error)
        self._notify_moved()
        if self._connection is not None:
            await self._connection.close()
        return self._listeners.notify_failed(error, left)

    # -- the task ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        buffer = self._buffer
        try:
            while buffer.waiting or buffer.sending:
                few = len(buffer.waiting) < buffer.batch
                if few and not buffer.closed and self._hurry <= buffer.finished:
                    await self._linger()
                self._urgent.clear()
                buffer.next_batch()
                await self._store()
        finally:
            self._task = None

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(self._linger_s):
                await self._urgent.wait()
        except TimeoutError:
            pass  # no more jobs came: send what is there

    async def _store(self) -> None:
        """Store the batch, however long that takes; refuse what cannot be stored."""
        buffer, attempt = self._buffer, 0
        if self._connection is None:
            self._connection = async_connection_for(self._client, self._keys, self._patience)
        while True:
            try:
                if buffer.apart:
                    answer: Answer = await self._spread.store(buffer.sending)
                else:
                    answer = await self._sent(self._connection)
            except QueueSharded:
                buffer.apart = True
            except Exception as error:
                if not buffer.repeats(error):
                    self.last_error = reason = buffer.reason(error)
                    refused = buffer.refuse(reason)
                    self._notify_moved()
                    self._listeners.notify_failed(reason, refused)
                    return
                attempt += 1
                if attempt == 1:
                    log.warning("puts into queue %s wait for Redis: %s", self._queue, error)
                self.last_error = error
                buffer.interrupted(error)
                await asyncio.sleep(backoff(attempt))
            else:
                break
        if attempt:
            log.warning("puts into queue %s go on", self._queue)
        others: Refused = {}
        if isinstance(answer, Accepted):
            stored = buffer.confirm(answer)
        else:
            stored, others = buffer.confirm_apart(answer)
        self.last_error = next(reversed(others), None)
        self._notify_moved()
        self._listeners.notify_stored(stored)
        for why, some in others.items():
            self._listeners.notify_failed(why, some)

    async def _sent(self, connection: AsyncConnection) -> Accepted:
        """The answer to the batch, or to the part of it that a bounded queue takes now."""
        buffer = self._buffer
        while True:
            try:
                accepted = await connection.run(buffer.call(), queue=self._queue)
            except QueueFull as full:
                if buffer.shrink(full):
                    continue
                accepted = await self._when_room(connection, full)
            buffer.require_confirmed(accepted)
            return accepted

    async def _when_room(self, connection: AsyncConnection, full: QueueFull) -> Accepted:
        """The answer, once the batch has entered a bounded queue. Raises the server errors, and
        QueueFull where it is not to be waited for."""
        wait = self._buffer.room_wait(full, self._patience)
        while True:
            state, word = await connection.run_then(wait.ask(), wait.block(), queue=self._queue)
            try:
                if wait.may_enter(state, word):
                    return wait.entered(await connection.run(wait.entry(), queue=self._queue))
            except QueueFull as again:
                wait.refused(again)
