"""Several enqueues, and what became of jobs, as one step of a shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rqueue.client._async.consumer_commit import AsyncConsumerCommit
from rqueue.client._async.earlier_shards import Asked, known_before
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.client._async.shard_changes import AsyncShardChanges
from rqueue.client._async.shards import TRIES
from rqueue.client._async.transaction import AsyncTransaction
from rqueue.errors import ConfigError, ShardsChanged
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.tasks.request import JobRequest

__all__ = ["AsyncShardTransaction"]


class AsyncShardTransaction(AsyncTransaction):
    """As `AsyncTransaction`, in the shard that `key` belongs to when it is committed: all its jobs
    have this key. A consumer whose jobs are settled in it is one of that shard. Made by
    `AsyncShardedQueue.transaction(key)`."""

    def __init__(
        self,
        queue: AsyncQueue,
        changes: AsyncShardChanges,
        key: str,
        consumer: AsyncConsumerCommit | None = None,
    ) -> None:
        super().__init__(queue, consumer)
        self._changes = changes
        self._key = key

    def _gather(self, request: JobRequest, target: AsyncQueueCalls) -> AsyncJobHandle[Any]:
        if target.name != self._queue.name:
            return super()._gather(request, target)
        if request.options.key not in (None, "", self._key):
            raise ConfigError(
                "key",
                f"a transaction is one step of one shard: its jobs have the key '{self._key}'",
            )
        options = replace(request.options, key=self._key)
        handle = super()._gather(request._replace(options=options), target)
        # a shard keeps no keys: they say which shard it is
        self._parts.puts[-1] = self._parts.puts[-1]._replace(key="")
        return handle

    async def commit(self) -> None:
        """As `AsyncTransaction.commit`. Raises ConfigError where the consumer is one of another
        shard than that of the key, which may have moved: nothing was done."""
        self._parts.close()
        handles, shards = [*self._handles], self._changes._shards
        await self._changes._known()
        for tries in range(TRIES):
            table = await shards.table()
            self._queue = shards.at(table.shard_of(self._key))
            self._require_consumer_there()
            await self._leave_out_known(table, shards.at)
            self._parts.version = table.version
            try:
                if self._parts:
                    await self._do()
                break
            except ShardsChanged as error:
                if tries == TRIES - 1:
                    raise
                await shards.changed(error)
        for handle in handles:
            if handle in self._handles:
                handle._queue = self._queue

    def _require_consumer_there(self) -> None:
        if self._consumer is None or self._consumer.keys.queue == self._queue.name:
            return
        raise ConfigError(
            "consumer",
            f"it is one of '{self._consumer.keys.queue}', and key '{self._key}' belongs to"
            f" '{self._queue.name}': enqueue what follows under an id of its own, then ack the job",
        )

    async def _leave_out_known(
        self, table: ShardTable, at: Callable[[Shard], AsyncQueueCalls]
    ) -> None:
        """Jobs that a shard knows to which the key belonged before are not stored again."""
        if not table.past:
            return
        parts = self._parts
        jobs = [
            Asked(place, put, own, self._key)
            for place, (put, own) in enumerate(zip(parts.puts, parts.own, strict=True))
        ]
        found = await known_before(table, jobs, at)
        for place in sorted(found, reverse=True):
            handle, known = self._handles.pop(place), found[place]
            handle._queue, handle.id = known._queue, known.id
            handle.created, handle.conflict = False, known.conflict
            del parts.puts[place], parts.own[place]
