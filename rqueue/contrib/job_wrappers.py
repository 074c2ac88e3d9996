"""What a framework puts around every job of a worker process: a context, connections to close."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext
from rqueue.tasks.middleware import Middleware

__all__ = ["around_jobs"]

Around = Callable[[], AbstractContextManager[Any]]
AsyncAround = Callable[[], AbstractAsyncContextManager[Any]]


def around_jobs(around: Around, async_around: AsyncAround | None = None) -> App:
    """Run every job of this process inside of what `around` returns, jobs of async tasks inside of
    what `async_around` does (None: the same, entered and left on the event loop). Called while the
    application is imported; what was given first is the outermost."""
    return App(middleware=[_AroundJobs(around, async_around)])


class _AroundJobs(Middleware):
    def __init__(self, around: Around, async_around: AsyncAround | None) -> None:
        self._around = around
        self._async_around = async_around

    def around_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        with self._around():
            return call()

    async def around_async_job(self, job: JobContext, call: Callable[[], Awaitable[Any]]) -> Any:
        if self._async_around is None:
            with self._around():
                return await call()
        async with self._async_around():
            return await call()
