"""The keys of a queue's unique jobs."""

from __future__ import annotations

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import ConfigError
from rqueue.model.expect import expect
from rqueue.model.unique_key import is_key
from rqueue.protocol import commands

__all__ = ["AsyncUniqueKeys"]


class AsyncUniqueKeys:
    """`queue.unique`. A key is what `task.unique_key(*args)` says of a call, and `rqueue show` of a
    job."""

    def __init__(self, queue: AsyncQueueCalls) -> None:
        self._queue = queue

    async def owner(self, key: str) -> AsyncJobHandle[object] | None:
        """The job that has this key; None where no job has. One that is done has it until its
        period is over. Raises ConfigError."""
        return await self._ask(key, clear=False)

    async def clear(self, key: str) -> AsyncJobHandle[object] | None:
        """Free this key: the next job of it is enqueued, whatever the one does that had it, which
        is not touched; returns that one. Raises ConfigError."""
        return await self._ask(key, clear=True)

    async def _ask(self, key: str, *, clear: bool) -> AsyncJobHandle[object] | None:
        expect("key", key, str, "the key of a job, as task.unique_key(...) has it")
        if not is_key(key):
            raise ConfigError("key", f"{key!r} is none: task.unique_key(...) makes it of a call")
        id_ = await self._queue._run(commands.key_owner(self._queue.keys, key, clear=clear))
        return AsyncJobHandle(self._queue, id_, created=False) if id_ else None
