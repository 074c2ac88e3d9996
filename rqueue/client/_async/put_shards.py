"""Background puts into the shards of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.put_handle import AsyncPutHandle
from rqueue.client._async.spread_batch import SpreadBatch
from rqueue.errors import (
    ConfigError,
    NotConfirmed,
    QueueFull,
    RedisUnavailable,
    RQueueError,
    ShardsChanged,
)
from rqueue.model.confirmation import Confirmation, stricter
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.put_buffer import Item
from rqueue.protocol.shard_keys import key_of

__all__ = ["AsyncPutShards"]

ROOM_S = 5.0
"""Seconds that a step waits for room in a bounded shard, before it is seen whether the putter is
closed."""


class AsyncPutShards:
    """Stores batches of background puts where they belong. A batch may take several tries: what a
    shard has is not sent to it again."""

    def __init__(self, queue: AsyncEnqueuing) -> None:
        self._queue = queue
        self._items: Sequence[Item] = ()
        self._batch = SpreadBatch([], [], None, None)

    async def store(self, items: Sequence[Item]) -> Mapping[int, Exception]:
        """Store what is left of a batch; returns why jobs of it are refused, by their places.
        Raises what passes by itself: RedisUnavailable, NotConfirmed, ShardsChanged, and QueueFull
        where there was no room yet."""
        if items is not self._items:
            self._items, self._batch = items, _batch_of(items)
        batch, shards = self._batch, self._queue._spread()
        while batch.left:
            try:
                await shards.store_left(batch)
            except NotConfirmed as error:
                batch.doubt(batch.failed)
                if not error.reason:
                    raise
                batch.refuse(error)
            except RedisUnavailable:
                batch.doubt(batch.failed)
                raise
            except ShardsChanged:
                raise
            except QueueFull as error:
                if error.waits:
                    raise
                batch.refuse(error)
            except RQueueError as error:
                batch.refuse(error)
        for place, stored in batch.handles.items():
            handle = cast("AsyncPutHandle[Any]", items[place].handle)
            handle._stored_as(stored, own=items[place].own)
        self._items = ()
        return batch.refused


def _batch_of(items: Sequence[Item]) -> SpreadBatch:
    jobs: list[tuple[Put, bool]] = []
    keys: list[str] = []
    refused: dict[int, Exception] = {}
    confirm: Confirmation | None = None
    for place, item in enumerate(items):
        put = item.put()
        try:
            # where it has nothing else its id says where it goes: at each try into the same shard
            key = key_of(put, own=False)
        except ConfigError as error:
            key, refused[place] = "", error
        jobs.append((put.keyless, item.own))
        keys.append(key)
        confirm = stricter(confirm, item.confirm)
    batch = SpreadBatch(jobs, keys, confirm, ROOM_S)
    batch.refused = refused
    return batch
