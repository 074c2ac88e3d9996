"""A queue of values, as Curator's SimpleDistributedQueue and Java's Queue have it (C-27)."""

from __future__ import annotations

from typing import Any

from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import ConfigError, QueueEmpty
from rqueue.model.job import Delivery
from rqueue.protocol.paging import waiting

__all__ = ["AsyncSimpleQueue"]

ITEM = "rqueue.item"
"""The task of an item: no worker knows it."""


class AsyncSimpleQueue:
    """Values in, in order; each out once. Any number of processes may use it.

    queue: where the values are; the caller closes it. An item is a job that nobody runs, and it is
    gone when it is returned: who dies then has lost it (at most once). Values are those that JSON
    has, but for None. What was enqueued in another way comes as its `Envelope`. Workers do not
    serve such a queue.
    """

    def __init__(self, queue: AsyncQueue) -> None:
        self.queue = queue

    async def offer(self, value: Any) -> bool:
        """Put a value at the tail; True. Raises NotEncodable and the server errors."""
        if value is None:
            raise ConfigError("value", "None is no value: poll returns it where there is none")
        await self.queue.send(ITEM, [value])
        return True

    async def poll(self, timeout: float | None = 0) -> Any:
        """Take the value at the head; None where none came in `timeout` seconds."""
        job = await self.queue.get(timeout)
        return None if job is None else self._value(job)

    async def take(self) -> Any:
        """Take the value at the head; where there is none, wait for it."""
        return await self.poll(None)

    async def remove(self) -> Any:
        """Take the value at the head. Raises QueueEmpty."""
        job = await self.queue.get()
        if job is None:
            raise QueueEmpty(self.queue.name)
        return self._value(job)

    async def peek(self) -> Any:
        """The value at the head, which stays there; None where there is none."""
        job = await self._head()
        return None if job is None else self._value(job)

    async def element(self) -> Any:
        """The value at the head, which stays there. Raises QueueEmpty."""
        job = await self._head()
        if job is None:
            raise QueueEmpty(self.queue.name)
        return self._value(job)

    async def _head(self) -> Delivery | None:
        async for page in self.queue._pages(waiting(self.queue.keys, limit=1)):
            if page.jobs:
                return page.jobs[0]
        return None

    def _value(self, job: Delivery) -> Any:
        envelope = self.queue.envelope(job)
        return envelope.args[0] if envelope.task == ITEM else envelope
