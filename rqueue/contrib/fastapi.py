"""rqueue in FastAPI: a lifespan, and queues as dependencies; see `docs/fastapi.md`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Annotated

from fastapi import Depends

from rqueue.client._async.queue import AsyncQueue
from rqueue.client.default_queues import aqueue
from rqueue.contrib.starlette import lifespan
from rqueue.model.names import check_queue

__all__ = ["QueueDep", "lifespan", "queue_named"]


@cache
def queue_named(name: str) -> Callable[[], Awaitable[AsyncQueue]]:
    """The dependency that provides the queue of this name: `Depends(queue_named("mail"))`. It is
    the same object for the same name, so that `app.dependency_overrides` finds it. Raises
    InvalidName."""
    check_queue(name)

    async def queue() -> AsyncQueue:
        return aqueue(name)

    return queue


QueueDep = Annotated[AsyncQueue, Depends(queue_named("default"))]
"""The queue `default`, as the type of a parameter."""
