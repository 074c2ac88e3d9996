"""The shards of a queue, as one client sees them: where a job goes, and what a change asks for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Generic, Protocol, Self, TypeVar

from rqueue.client._async.earlier_shards import Asked, known_before
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.client._async.shard_course import advance
from rqueue.client._async.spread_batch import SpreadBatch
from rqueue.errors import (
    ConfigError,
    QueueSharded,
    RedisUnavailable,
    ServerError,
    ShardsChanged,
    UnknownQueue,
)
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.model.signing import split_signature
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.enqueue import BATCH, Accepted, Put
from rqueue.protocol.commands.shards import find_known, read_shards
from rqueue.protocol.job_packer import Batch, JobPacker, Packed, as_put
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings

__all__ = ["AsyncShards"]

TRIES = 20
"""How often a job is sent again because the table has changed just then."""

WIDEST = 16
"""For so many shards steps are filled, as far as the keys permit."""

LENGTH_S = 1.0
"""How long the length of a shard is taken to be what it was seen to be."""


T = TypeVar("T")


class AsyncSpread(Protocol):
    """What the shards are asked for by way of their queues, and of the one that is spread."""

    name: str
    keys: QueueKeys
    settings: Settings
    _packer: JobPacker

    def at(self, name: str) -> Self:
        """Another queue over the same connections."""

    async def enqueue_here(self, packed: Packed, version: int = 0) -> Any:
        """Enqueue one job into this very queue."""

    async def store_here(self, batch: Batch, max_wait: float | None) -> Sequence[Any]:
        """Store jobs in this very queue."""

    async def _run(self, call: ScriptCall[T]) -> T: ...

    async def close(self) -> None:
        """Close the connections."""


Q = TypeVar("Q", bound=AsyncSpread)


class AsyncShards(Generic[Q]):
    """The shards of `queue`. The table is read at the first call, and again when a shard says that
    it is another one."""

    def __init__(self, queue: Q) -> None:
        self._queue = queue
        self._table: ShardTable | None = None
        self._elsewhere: dict[str, Q] = {}
        self._lengths: dict[int, tuple[float, float]] = {}  # jobs, and when they were counted

    # -- the table ---------------------------------------------------------------------------------

    async def table(self, *, anew: bool = False) -> ShardTable:
        """The table. Raises QueueSharded where there is none."""
        if self._table is None or anew:
            table = await self._queue._run(read_shards(self._queue.keys))
            if not table.version:
                raise QueueSharded(self._queue.name)
            self._table = table
        return self._table

    async def advance(self) -> ShardTable:
        """Do all that the table asks for and can be done now, see `rqueue.protocol.sharding`."""
        table = await advance(self._run_at, self._queue.keys)
        if not table.version:
            self._table = None
            raise UnknownQueue(self._queue.name, "its table of shards is gone")
        self._table = table
        return table

    async def _run_at(self, shard: Shard | None, call: ScriptCall[T]) -> T:
        if shard is None:
            return await self._queue._run(call)
        return await self.at(shard)._run(call)

    def at(self, shard: Shard) -> Q:
        """The queue of a shard."""
        queue = self._queue
        name = f"{queue.name}~{shard.number}"
        if not shard.place:
            return queue.at(name)
        found = self._elsewhere.get(shard.place)
        if found is None:
            made: Any = type(queue)
            found = made(name, settings=replace(queue.settings, url=shard.place))
            self._elsewhere[shard.place] = found
        return found.at(name)

    def _calls_at(self, shard: Shard) -> AsyncQueueCalls:
        found: Any = self.at(shard)
        calls: AsyncQueueCalls = found
        return calls

    async def close(self) -> None:
        """Close the connections to other servers than that of the table."""
        while self._elsewhere:
            await self._elsewhere.popitem()[1].close()

    # -- where a job goes --------------------------------------------------------------------------

    async def _shard_for(self, key: str) -> Shard:
        table = await self.table()
        return table.shard_of(key) if key else await self._shorter(table.open)

    async def _shorter(self, shards: list[Shard]) -> Shard:
        """The shorter of two that chance takes: with it the longest of all is hardly longer than
        the others."""
        some = random.sample(shards, min(2, len(shards)))
        lengths = [await self._length(shard) for shard in some]
        found = some[lengths.index(min(lengths))]
        length, seen = self._lengths[found.number]
        self._lengths[found.number] = length + 1, seen
        return found

    async def _length(self, shard: Shard) -> float:
        """Jobs that wait in a shard; infinite where it cannot be reached."""
        length, seen = self._lengths.get(shard.number, (0.0, -LENGTH_S))
        if monotonic() - seen < LENGTH_S:
            return length
        queue = self.at(shard)
        try:
            counts = await queue._run(commands.counts(queue.keys, oldest=False))
        except ServerError:
            length = float("inf")
        else:
            length = float(counts.ready + counts.blocked + counts.scheduled)
        self._lengths[shard.number] = length, monotonic()
        return length

    async def changed(self, error: ShardsChanged) -> None:
        """A shard goes by another table: by an earlier one where nobody has informed it yet."""
        if error.known >= error.named:
            table = await self.table(anew=True)
            if table.version > error.named:
                return
        await self.advance()

    async def left(self) -> list[str]:
        """The names of those shards that are there, as queues."""
        names = []
        for shard in (await self.table(anew=True)).served:
            queue = self.at(shard)
            if is_there(await queue._run(commands.counts(queue.keys, oldest=False))):
                names.append(queue.name)
        return names

    # -- where a job is ----------------------------------------------------------------------------

    async def holder(self, id: str) -> Q:
        """The queue of the shard that knows a job; the one that its id says where none does. Raises
        the error of a shard that cannot be asked, where no other one knows it."""
        table = await self.table()
        while True:
            away: ServerError | None = None
            for shard in _first_of(table, table.shard_of(id)):
                queue = self.at(shard)
                try:
                    known = await queue._run(find_known(queue.keys, [id]))
                except ServerError as error:
                    if shard.state != "closed" or not shard.place:
                        away = error
                else:
                    if known.places:
                        return queue
            if away is not None:
                raise away
            before, table = table, await self.table(anew=True)
            if table.version == before.version:
                return self.at(table.shard_of(id))

    # -- enqueue -----------------------------------------------------------------------------------

    async def enqueue(self, packed: Packed) -> Any:
        """Enqueue one job where it belongs."""
        options = packed.options
        put = as_put(packed.id, b"", options)
        key = key_of(put, packed.own)
        if options.key:
            packed = packed._replace(options=replace(options, key=None))
        for tries in range(TRIES):
            table = await self.table()
            shard = await self._shard_for(key)
            try:
                asked = Asked(0, put, packed.own, key)
                if table.past and (known := await known_before(table, [asked], self._calls_at)):
                    return known[0]
                return await self.at(shard).enqueue_here(packed, table.version)
            except ShardsChanged as error:
                if tries == TRIES - 1:
                    raise
                await self.changed(error)
            except RedisUnavailable as error:
                if tries == TRIES - 1 or not await self._replaced(table, error):
                    raise
                if error.outcome_unknown:
                    if not key:
                        raise  # it may be anywhere
                    packed = packed._replace(own=False)
        raise AssertionError

    async def _replaced(self, table: ShardTable, error: RedisUnavailable) -> bool:
        """Whether there is another table by now than that by which a shard was asked that cannot be
        reached: the shard may have been closed, and its server gone. Raises the error where nobody
        knows."""
        try:
            return (await self.table(anew=True)).version != table.version
        except ServerError:
            raise error from None

    async def most(self) -> int:
        """How many jobs are sorted by their shards at a time, so that the steps of each are not too
        small."""
        return BATCH * min(WIDEST, len((await self.table()).open))

    async def store(self, batch: Batch, max_wait: float | None) -> list[Any]:
        """Enqueue many jobs, one step for each shard; each key's in their order."""
        spread = SpreadBatch(
            [
                Asked(place, unsigned(put), own, key_of(put, own))
                for place, (put, own) in enumerate(batch.jobs)
            ],
            batch.confirm,
            max_wait,
        )
        await self.store_left(spread)
        return [spread.handles[place] for place in sorted(spread.handles)]

    async def store_left(self, batch: SpreadBatch) -> None:
        """Enqueue what is left of a batch. Where a step is refused `batch.sent` are its jobs, and
        `batch.handles` has those of the steps before it."""
        for tries in range(TRIES):
            table = await self.table()
            try:
                await self._store(batch)
            except ShardsChanged as error:
                if tries == TRIES - 1:
                    raise
                await self.changed(error)
            except RedisUnavailable as error:
                if error.outcome_unknown and not all(job.key for job in batch.sent):
                    raise  # they may be anywhere
                if tries == TRIES - 1 or not await self._replaced(table, error):
                    raise
                if error.outcome_unknown:
                    batch.doubt()
            else:
                return

    async def _store(self, batch: SpreadBatch) -> None:
        """Enqueue what is left by the table as it is known. Raises ShardsChanged where a shard
        refuses the table; the other shards have theirs then."""
        table = await self.table()
        batch.sent = jobs = batch.left
        if table.past:
            batch.handles |= await known_before(table, jobs, self._calls_at)
        shards: dict[Shard, list[Asked]] = {}
        for job in batch.left:
            shards.setdefault(await self._shard_for(job.key), []).append(job)
        changed: ShardsChanged | None = None
        for shard, its in shards.items():
            queue = self.at(shard)
            for start in range(0, len(its), BATCH):
                batch.sent = some = its[start : start + BATCH]
                puts = queue._packer.signed_puts([job.put._replace(key="") for job in some])
                signed = [(put, job.own) for put, job in zip(puts, some, strict=True)]
                step = Batch(signed, batch.confirm, table.version)
                try:
                    stored = await queue.store_here(step, batch.max_wait)
                except ShardsChanged as error:
                    changed = error
                    break  # what follows goes behind these
                batch.handles |= {job.place: one for job, one in zip(some, stored, strict=True)}
        if changed is not None:
            raise changed

    async def store_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already, as `AsyncQueue.enqueue_puts`."""
        jobs = [Asked(n, unsigned(put), False, key_of(put, False)) for n, put in enumerate(puts)]
        batch = SpreadBatch(jobs, self._queue._packer.confirmation(), None)
        await self.store_left(batch)
        return batch.accepted()


def _first_of(table: ShardTable, first: Shard) -> list[Shard]:
    others = [shard for shard in table.shards.values() if shard.state != "gone"]
    return [first, *(shard for shard in others if shard != first)]


def key_of(put: Put, own: bool) -> str:
    """What says where a job goes; "": nothing. Raises ConfigError where two things would."""
    if put.key:
        return put.key
    unique = put.unique.partition(":")[2]
    if put.group and unique:
        raise ConfigError(
            "key",
            "a job with a group and a unique key goes into the shard of neither: say with a key"
            " which jobs go together",
        )
    return put.group or unique or ("" if own else put.id)


def unsigned(put: Put) -> Put:
    """A signature holds for one queue: that of a shard is made when the shard is known."""
    body = put.envelope
    return put._replace(envelope=split_signature(body).json) if body[:1] == b"S" else put
