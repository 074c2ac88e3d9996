"""Listening to all shards of a queue at once, also to those that open meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rqueue.client._async.queue import AsyncQueue
    from rqueue.settings import Settings

__all__ = ["listen"]

T = TypeVar("T")

AGAIN_S = 5.0
"""After so long it is looked whether shards have opened."""


def listen(
    queue: str,
    settings: Settings,
    listen_to: Callable[[AsyncQueue, bool], AsyncIterator[T]],
    show: Callable[[str, T], bool],
) -> None:
    """Listen to each shard of a queue that is spread, until `show(shard, what it said)` answers
    False. `listen_to` gets its queue, and whether it has opened meanwhile. Raises what a listener
    raises, and the server errors."""
    try:
        asyncio.run(_listen(queue, settings, listen_to, show))
    except* Exception as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _listen(
    queue: str,
    settings: Settings,
    listen_to: Callable[[AsyncQueue, bool], AsyncIterator[T]],
    show: Callable[[str, T], bool],
) -> None:
    from rqueue.client._async.sharded_queue import AsyncShardedQueue

    heard: asyncio.Queue[tuple[str, T]] = asyncio.Queue()

    async def hear(its: AsyncQueue, late: bool) -> None:
        async for said in listen_to(its, late):
            await heard.put((its.name, said))

    listeners: dict[str, asyncio.Task[Any]] = {}
    async with AsyncShardedQueue(queue, settings=settings) as spread, asyncio.TaskGroup() as group:
        late = False
        while True:
            for its in await spread.queues():
                if its.name not in listeners:
                    listeners[its.name] = group.create_task(hear(its, late))
            late = True
            while True:
                try:
                    async with asyncio.timeout(AGAIN_S):
                        name, said = await heard.get()
                except TimeoutError:
                    break
                if not show(name, said):
                    for task in listeners.values():
                        task.cancel()
                    return
