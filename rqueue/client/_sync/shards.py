# Generated from rqueue/client/_async/shards.py (`make generate`): do not edit.
"""The shards of a queue, as one client sees them: where a job goes, and what a change asks for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Generic, Protocol, Self, TypeVar

from rqueue.errors import ConfigError, QueueSharded, ServerError, ShardsChanged
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.model.signing import split_signature
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.commands.shards import read_shards
from rqueue.protocol.job_packer import Batch, JobPacker, Packed, as_put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import advance
from rqueue.settings import Settings

__all__ = ["Shards"]

TRIES = 20
"""How often a job is sent again because the table has changed just then."""

LENGTH_S = 1.0
"""How long the length of a shard is taken to be what it was seen to be."""


T = TypeVar("T")


class Spread(Protocol):
    """What the shards are asked for by way of their queues, and of the one that is spread."""

    name: str
    keys: QueueKeys
    settings: Settings
    _packer: JobPacker

    def at(self, name: str) -> Self:
        """Another queue over the same connections."""

    def enqueue_here(self, packed: Packed, version: int = 0) -> Any:
        """Enqueue one job into this very queue."""

    def store_here(self, batch: Batch, max_wait: float | None) -> Sequence[Any]:
        """Store jobs in this very queue."""

    def _run(self, call: ScriptCall[T]) -> T: ...

    def close(self) -> None:
        """Close the connections."""


Q = TypeVar("Q", bound=Spread)


class Shards(Generic[Q]):
    """The shards of `queue`. The table is read at the first call, and again when a shard says that
    it is another one."""

    def __init__(self, queue: Q) -> None:
        self._queue = queue
        self._table: ShardTable | None = None
        self._elsewhere: dict[str, Q] = {}
        self._lengths: dict[int, tuple[float, float]] = {}  # jobs, and when they were counted

    # -- the table ---------------------------------------------------------------------------------

    def table(self, *, anew: bool = False) -> ShardTable:
        """The table. Raises QueueSharded where there is none."""
        if self._table is None or anew:
            table = self._queue._run(read_shards(self._queue.keys))
            if not table.version:
                raise QueueSharded(self._queue.name)
            self._table = table
        return self._table

    def advance(self) -> ShardTable:
        """Do all that the table asks for and can be done now, see `rqueue.protocol.sharding`."""
        self._table = advance(self._run_at, self._queue.keys)
        return self._table

    def _run_at(self, shard: Shard | None, call: ScriptCall[T]) -> T:
        if shard is None:
            return self._queue._run(call)
        return self.at(shard)._run(call)

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

    def close(self) -> None:
        """Close the connections to other servers than that of the table."""
        while self._elsewhere:
            self._elsewhere.popitem()[1].close()

    # -- where a job goes --------------------------------------------------------------------------

    def _shard_for(self, put: Put, own: bool) -> Shard:
        table = self.table()
        key = _key_of(put, own)
        return table.shard_of(key) if key else self._shorter(table.open)

    def _shorter(self, shards: list[Shard]) -> Shard:
        """The shorter of two that chance takes: with it the longest of all is hardly longer than
        the others."""
        some = random.sample(shards, min(2, len(shards)))
        lengths = [self._length(shard) for shard in some]
        found = some[lengths.index(min(lengths))]
        length, seen = self._lengths[found.number]
        self._lengths[found.number] = length + 1, seen
        return found

    def _length(self, shard: Shard) -> float:
        """Jobs that wait in a shard; infinite where it cannot be reached."""
        length, seen = self._lengths.get(shard.number, (0.0, -LENGTH_S))
        if monotonic() - seen < LENGTH_S:
            return length
        queue = self.at(shard)
        try:
            counts = queue._run(commands.counts(queue.keys, oldest=False))
        except ServerError:
            length = float("inf")
        else:
            length = float(counts.ready + counts.blocked + counts.scheduled)
        self._lengths[shard.number] = length, monotonic()
        return length

    def _changed(self, error: ShardsChanged) -> None:
        """A shard goes by another table: by an earlier one where nobody has informed it yet."""
        if error.known >= error.named:
            table = self.table(anew=True)
            if table.version > error.named:
                return
        self.advance()

    # -- enqueue -----------------------------------------------------------------------------------

    def enqueue(self, packed: Packed) -> Any:
        """Enqueue one job where it belongs."""
        options = packed.options
        put = as_put(packed.id, b"", options)
        if options.key:
            packed = packed._replace(options=replace(options, key=None))
        for tries in range(TRIES):
            table = self.table()
            shard = self._shard_for(put, packed.own)
            try:
                return self.at(shard).enqueue_here(packed, table.version)
            except ShardsChanged as error:
                if tries == TRIES - 1:
                    raise
                self._changed(error)
        raise AssertionError

    def store(self, batch: Batch, max_wait: float | None) -> list[Any]:
        """Enqueue many jobs, one step for each shard; each key's in their order."""
        handles: dict[int, Any] = {}
        left = [(place, _unsigned(put), own) for place, (put, own) in enumerate(batch.jobs)]
        for tries in range(TRIES):
            table = self.table()
            shards: dict[Shard, list[tuple[int, Put, bool]]] = {}
            for place, put, own in left:
                shard = self._shard_for(put, own)
                shards.setdefault(shard, []).append((place, put, own))
            refused: list[tuple[int, Put, bool]] = []
            changed: ShardsChanged | None = None
            for shard, some in shards.items():
                queue = self.at(shard)
                puts = queue._packer.signed_puts([put._replace(key="") for _, put, _ in some])
                jobs = [(put, job[2]) for put, job in zip(puts, some, strict=True)]
                step = Batch(jobs, batch.confirm, table.version)
                try:
                    its = queue.store_here(step, max_wait)
                except ShardsChanged as error:
                    refused, changed = refused + some, error
                else:
                    handles |= {job[0]: one for job, one in zip(some, its, strict=True)}
            if changed is None:
                break
            if tries == TRIES - 1:
                raise changed
            left = sorted(refused, key=lambda job: job[0])
            self._changed(changed)
        return [handles[place] for place in sorted(handles)]


def _key_of(put: Put, own: bool) -> str:
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


def _unsigned(put: Put) -> Put:
    """A signature holds for one queue: that of a shard is made when the shard is known."""
    body = put.envelope
    return put._replace(envelope=split_signature(body).json) if body[:1] == b"S" else put
