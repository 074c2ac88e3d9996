"""What the client's tests need for asyncio and for threads: the sync ones are made from the others,
see `tools/unasync.py`."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands
from rqueue.testing import move_time as _move_time


class AsyncTogether:
    """Runs calls beside the test, as tasks."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self, call: Callable[..., Awaitable[Any]], *args: Any) -> "AsyncStarted":
        task = asyncio.ensure_future(call(*args))
        self._tasks.append(task)  # type: ignore[arg-type]
        return AsyncStarted(task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            if error is not None:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class AsyncStarted:
    """A call under way."""

    def __init__(self, task: "asyncio.Future[Any]") -> None:
        self._task = task

    def done(self) -> bool:
        return self._task.done()

    async def result(self, timeout: float) -> Any:
        async with asyncio.timeout(timeout):
            return await self._task


class Together:
    """Runs calls beside the test, in threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor()

    def start(self, call: Callable[..., Any], *args: Any) -> "Future[Any]":
        return self._threads.submit(call, *args)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._threads.shutdown()


async def aoutside(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what blocks, such as a test's own monitor, without blocking the loop."""
    return await asyncio.to_thread(call, *args, **kwargs)


def outside(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it."""
    return call(*args, **kwargs)


async def amove_time(queue: AsyncQueue, ms: int) -> None:
    """Move a queue's clock."""
    await queue.redis.hincrby(queue.keys.meta, "clock", ms)  # type: ignore[misc]


def move_time(queue: Queue, ms: int) -> None:
    """Move a queue's clock."""
    _move_time(queue, ms)


async def aend_lease(queue: AsyncQueue) -> None:
    """As if all consumers had been frozen, and another client looked."""
    await amove_time(queue, 60_000)
    await queue._run(commands.renew(queue.keys, 1000, []))


def end_lease(queue: Queue) -> None:
    """As if all consumers had been frozen, and another client looked."""
    move_time(queue, 60_000)
    queue._run(commands.renew(queue.keys, 1000, []))
