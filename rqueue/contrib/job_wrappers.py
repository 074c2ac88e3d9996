"""What a framework puts around every job of a worker process: a context, connections to close."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import wraps
from typing import Any

from rqueue.tasks.registry import registry
from rqueue.tasks.task import Task

__all__ = ["around_jobs"]

Around = Callable[[], AbstractContextManager[Any]]
AsyncAround = Callable[[], AbstractAsyncContextManager[Any]]


def around_jobs(around: Around, async_around: AsyncAround | None = None) -> None:
    """Run every job of this process inside of what `around` returns, jobs of async tasks inside of
    what `async_around` does (None: the same, entered and left on the event loop). Called while the
    application is imported."""

    @asynccontextmanager
    async def on_the_loop() -> AsyncIterator[None]:
        with around():
            yield

    def wrap(task: Task[Any, Any], function: Callable[..., Any]) -> Callable[..., Any]:
        if task.is_async:
            return _async(function, async_around or on_the_loop)
        return _sync(function, around)

    registry.wrap(wrap)


def _sync(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with around():
            return function(*args, **kwargs)

    return run


def _async(
    function: Callable[..., Coroutine[Any, Any, Any]], around: AsyncAround
) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async with around():
            return await function(*args, **kwargs)

    return run
