"""The shards of a queue, as one client sees them: where a job goes, and what a change asks for."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from rqueue.client._async.earlier_shards import Asked, known_before
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.client._async.shard_course import TableSteps, advance
from rqueue.client._async.shard_steps import AsyncShardSteps, Step, even
from rqueue.client._async.spread_batch import SpreadBatch
from rqueue.errors import (
    QueueSharded,
    RedisUnavailable,
    RQueueError,
    ServerError,
    ShardsChanged,
    UnknownQueue,
)
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.enqueue import BATCH, Accepted, Put
from rqueue.protocol.commands.shards import find_known, read_shards
from rqueue.protocol.job_packer import Batch, JobPacker, Packed, as_put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.shard_keys import key_of, unsigned
from rqueue.settings import Settings

__all__ = ["AsyncShards", "Begun"]

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
    table_steps: TableSteps | None

    def at(self, name: str) -> Self:
        """Another queue over the same connections."""

    async def enqueue_here(self, packed: Packed, version: int = 0) -> Any:
        """Enqueue one job into this very queue."""

    async def _run(self, call: ScriptCall[T]) -> T: ...

    async def close(self) -> None:
        """Close the connections."""


Q = TypeVar("Q", bound=AsyncSpread)


class Begun(NamedTuple):
    """Jobs that are on their way into the shards; steps: None where none was sent."""

    batch: SpreadBatch
    steps: AsyncShardSteps | None


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
            its = queue.at(name)
        else:
            found = self._elsewhere.get(shard.place)
            if found is None:
                made: Any = type(queue)
                found = made(name, settings=replace(queue.settings, url=shard.place))
                self._elsewhere[shard.place] = found
            its = found.at(name)
        its.table_steps = self.advance
        return its

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
        if key:
            return table.shard_of(key)
        return table.shards[(await self._shorter(table.open, 1))[0]]

    async def _shorter(self, shards: list[Shard], count: int) -> list[int]:
        """The number of a shard for each of so many jobs: the shorter of two that chance takes.
        With it the longest of all is hardly longer than the others."""
        numbers = [shard.number for shard in shards]
        most = len(numbers)
        if most == 1:
            return numbers * count
        chance = random.random
        pairs = [(0, 1)] * count
        if most > 2:
            firsts = [int(chance() * most) for _ in range(count)]
            # the second one is another than the first: as many steps behind it, in a ring
            pairs = [(one, (one + 1 + int(chance() * (most - 1))) % most) for one in firsts]
        elif chance() < 0.5:
            pairs = [(1, 0)] * count
        asked = {at for pair in {*pairs} for at in pair}
        lengths = {at: await self._length(shards[at]) for at in asked}
        found = []
        for one, other in pairs:
            shorter = one if lengths[one] <= lengths[other] else other
            lengths[shorter] += 1
            found.append(numbers[shorter])
        for at, length in lengths.items():
            self._lengths[numbers[at]] = length, self._lengths[numbers[at]][1]
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
        return await self.finish(await self.begin(batch, max_wait))

    async def begin(self, batch: Batch, max_wait: float | None) -> Begun:
        """Send the first steps of a batch and do not wait: `finish` has what came of it. What fails
        here fails there once more, where it is seen to."""
        if batch.keys:
            # a key comes first
            keys = batch.keys
            if not all(keys):
                given = zip(keys, batch.jobs, strict=True)
                keys = [key or key_of(put, own) for key, (put, own) in given]
            spread = SpreadBatch(batch.jobs, keys, batch.confirm, max_wait)
        else:
            keys = [key_of(put, own) for put, own in batch.jobs]
            jobs = [(unsigned(put.keyless), own) for put, own in batch.jobs]
            spread = SpreadBatch(jobs, keys, batch.confirm, max_wait)
        steps = None
        with suppress(RQueueError):
            steps = await self._steps(spread)
        return Begun(spread, steps)

    async def finish(self, begun: Begun) -> list[Any]:
        """The handles of a batch that was begun."""
        batch, steps = begun
        await self.store_left(batch, steps)
        return [*map(batch.handles.__getitem__, range(len(batch.jobs)))]

    async def store_left(self, batch: SpreadBatch, steps: AsyncShardSteps | None = None) -> None:
        """Enqueue what is left of a batch. steps: that are under way. Where a step is refused
        `batch.failed` are its jobs, and `batch.handles` has those of the steps that were done."""
        for tries in range(TRIES):
            table = await self.table()
            try:
                begun, steps = steps, None
                await (begun or await self._steps(batch)).finish()
            except ShardsChanged as error:
                if tries == TRIES - 1:
                    raise
                await self.changed(error)
            except RedisUnavailable as error:
                if error.outcome_unknown and not all(batch.keys[place] for place in batch.failed):
                    raise  # they may be anywhere
                if tries == TRIES - 1 or not await self._replaced(table, error):
                    raise
                if error.outcome_unknown:
                    batch.doubt(batch.failed)
            else:
                return

    async def _steps(self, batch: SpreadBatch) -> AsyncShardSteps:
        """The steps of what is left by the table as it is known: the first ones are sent."""
        table = await self.table()
        if table.past and (asked := batch.asked(batch.left)):
            batch.handles |= await known_before(table, asked, self._calls_at)
        left = batch.left
        places = defaultdict[int, list[int]](list)
        for place, number in zip(left, await self._numbers_for(table, batch, left), strict=True):
            places[number].append(place)
        steps = AsyncShardSteps(
            [
                self._step(self.at(table.shards[number]), some, batch, table.version)
                for number, its in places.items()
                for some in even(its)
            ],
            batch,
        )
        await steps.begin()
        return steps

    async def _numbers_for(
        self, table: ShardTable, batch: SpreadBatch, left: Sequence[int]
    ) -> list[int]:
        """The numbers of the shards that these jobs of a batch go into."""
        all_ = len(left) == len(batch.keys)
        keys = batch.keys if all_ else [batch.keys[place] for place in left]
        keyless = keys.count("")
        if not keyless:
            return table.numbers_of(keys)
        numbers = await self._shorter(table.open, keyless)
        if keyless == len(keys):
            return numbers
        shorter = iter(numbers)
        owners = iter(table.numbers_of([key for key in keys if key]))
        return [next(owners if key else shorter) for key in keys]

    @staticmethod
    def _step(queue: Q, places: list[int], batch: SpreadBatch, version: int) -> Step:
        jobs = [batch.jobs[place] for place in places]
        if queue._packer.signs:
            puts = queue._packer.signed_puts([put for put, _ in jobs])
            jobs = [(put, own) for put, (_, own) in zip(puts, jobs, strict=True)]
        return Step(queue, places, Batch(jobs, batch.confirm, version))

    async def store_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already, as `AsyncQueue.enqueue_puts`."""
        jobs = [(unsigned(put.keyless), False) for put in puts]
        keys = [key_of(put, False) for put in puts]
        batch = SpreadBatch(jobs, keys, self._queue._packer.confirmation(), None)
        await self.store_left(batch)
        return batch.accepted()


def _first_of(table: ShardTable, first: Shard) -> list[Shard]:
    others = [shard for shard in table.shards.values() if shard.state != "gone"]
    return [first, *(shard for shard in others if shard != first)]
