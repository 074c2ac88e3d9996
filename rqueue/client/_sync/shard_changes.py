# Generated from rqueue/client/_async/shard_changes.py (`make generate`): do not edit.
"""How the shards of a queue come and go."""

from __future__ import annotations

from collections.abc import Callable

from rqueue.client._sync.alternate_links import configure_with_targets
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.shards import Shards
from rqueue.errors import ConfigError, QueueSharded, RedisUnavailable, ShardsMoving
from rqueue.model.expect import shown
from rqueue.model.shard_table import SHARDS_MAX, Shard, ShardTable, check_shard
from rqueue.protocol import commands
from rqueue.protocol.commands.schedules import read_schedules
from rqueue.protocol.commands.shards import set_shards
from rqueue.protocol.policies import alternate
from rqueue.protocol.shard_sums import options_of

__all__ = ["ShardChanges"]

TARGETS = alternate.POLICY.names
"""Options that are names of queues."""

TRIES = 20
"""How often a change is made again because another one was faster."""

Change = Callable[[ShardTable], tuple[str, list[Shard]]]
"""Of a table: what moves, and the shards that change."""


class ShardChanges:
    """The table of a queue's shards, and its changes."""

    def __init__(self, queue: Queue, shards: int | None) -> None:
        if shards is not None and (type(shards) is not int or not 1 <= shards <= SHARDS_MAX):
            said = f"{shown(shards)} is no whole number from 1 to {SHARDS_MAX}"
            raise ConfigError("shards", said)
        self._queue = queue
        self._first = shards
        self._shards: Shards[Queue] = queue._spread()

    def table(self) -> ShardTable:
        """The table as it is now; made, where there is none and `shards` says how many there are to
        be. Raises ConfigError where it does not, or the name has jobs or consumers of its own."""
        try:
            return self._shards.table(anew=True)
        except QueueSharded:
            if self._first is None:
                raise ConfigError(
                    "shards",
                    f"queue '{self._queue.name}' has no shards: `rqueue shards create"
                    f" {self._queue.name} 8`, or ShardedQueue(name, shards=8), spreads a new one",
                ) from None
        fields = {str(number): Shard(number).text for number in range(self._first)}
        fields |= {"version": "1", "moving": ""}
        if (self._queue._run(read_schedules(self._queue.keys, cursor="0"))).found:
            why = f"queue '{self._queue.name}' has schedules, whose jobs nobody would take"
            raise ConfigError("shards", why)
        self._queue._run(set_shards(self._queue.keys, 0, fields))
        return self._shards.advance()

    def _known(self) -> ShardTable:
        """The table as it was read last."""
        if self._shards._table is not None:
            return self._shards._table
        return self.table()

    def advance(self) -> ShardTable:
        """Do what the last change asks for and can be done now: tell shards of it, lift fences,
        close what is empty. Pools and clients do so by themselves; nothing is done twice."""
        self._known()
        return self._shards.advance()

    def open(
        self, number: int | None = None, *, weight: int = 1, place: str = "", order: bool = True
    ) -> int:
        """Open a shard, or one that was drained; returns its number (None: the next one).

        weight: its part of the keys, beside 1 of another. place: URL of its server, with the login,
        which stands in the table; "": where the table is. The keys that it gets come from all
        others. Their jobs wait in it until what was enqueued before has ended in the others, so
        that the order of each key holds; order=False: they do not wait. Raises ShardsMoving while
        an earlier change goes on, ConfigError.
        """

        def change(table: ShardTable) -> tuple[str, list[Shard]]:
            its = next(n for n in range(SHARDS_MAX) if n not in table.shards)
            shard = check_shard(its if number is None else number, weight, place)
            known = table.shards.get(shard.number)
            if known is not None and known in table.served:
                raise ConfigError("shard", f"shard {shard.number} is {known.state}")
            return f"open {shard.number}" if order else "", [shard]

        return self._change(change)

    def drain(self, number: int, *, order: bool = True) -> int:
        """Let a shard run empty: it takes no jobs any more, its consumers go on, and when it has no
        job it is closed. Returns its number.

        Its keys go to all others, which deliver nothing until what it has now has ended, so that
        the order of each key holds: drain a shard that is short. order=False: they go on. Raises
        ShardsMoving while an earlier change goes on, ConfigError.
        """

        def change(table: ShardTable) -> tuple[str, list[Shard]]:
            shard = table.shards.get(check_shard(number).number)
            if shard is None or shard.state != "open":
                raise ConfigError("shard", f"there is no open shard {number}")
            if len(table.open) == 1:
                raise ConfigError("shard", f"shard {number} is the last one")
            how = "" if order else " unordered"
            return f"drain {number}{how}", [shard._replace(state="draining")]

        return self._change(change)

    def forget(self, number: int) -> int:
        """Give up a shard whose server is gone for good: what it had is lost, its keys go to all
        others at once, and nobody waits for its jobs any more. Returns its number. Where another
        change goes on, it does so without this shard. Raises ConfigError where the shard answers:
        drain it then, and nothing is lost."""
        for _ in range(TRIES):
            table = self.table()
            shard = table.shards.get(check_shard(number).number)
            if shard is None or shard not in table.served:
                raise ConfigError("shard", f"there is no shard {number} that may have jobs")
            if table.open == [shard]:
                raise ConfigError("shard", f"shard {number} is the last one")
            self._require_away(shard)
            call = set_shards(self._queue.keys, table.version, table.without(number))
            if self._queue._run(call):
                self._shards.advance()
                return number
        raise ShardsMoving(self._queue.name, "changed by others again and again")

    def _require_away(self, shard: Shard) -> None:
        queue = self._shards.at(shard)
        try:
            queue._run(commands.counts(queue.keys, oldest=False))
        except RedisUnavailable:
            return
        raise ConfigError("shard", f"shard {shard.number} answers: drain it, and nothing is lost")

    def grow(self, threshold: int, most: int, *, order: bool = True) -> int | None:
        """Open one shard more where one has so many waiting jobs, and there are fewer than `most`
        (C-28); returns its number. order: see `open`. Nothing calls this by itself: it is the rule
        of an operator, or of a periodic job. None: there is nothing to do, or a change goes on."""
        for name, value, limit in (("threshold", threshold, 10**9), ("most", most, SHARDS_MAX)):
            if type(value) is not int or not 1 <= value <= limit:
                raise ConfigError(name, f"{shown(value)} is no whole number from 1 to {limit}")
        table = self.table()
        if table.moving or len(table.open) >= most:
            return None
        for shard in table.open:
            queue = self._shards.at(shard)
            its = queue._run(commands.counts(queue.keys, oldest=False))
            if its.ready + its.blocked + its.scheduled >= threshold:
                try:
                    return self.open(order=order)
                except ShardsMoving:  # another one was faster
                    return None
        return None

    def _change(self, change: Change) -> int:
        self.table()
        for _ in range(TRIES):
            table = self._shards.advance()
            moving, changed = change(table)
            if table.moving:
                raise ShardsMoving(table.queue, table.moving)
            for shard in changed:
                if shard.state == "open":
                    self._make_like(table.open[0], shard)
            fields = {str(shard.number): shard.text for shard in changed}
            fields |= {"version": str(table.version + 1), "moving": moving}
            fields["past"] = table.past_with(changed)
            if self._queue._run(set_shards(self._queue.keys, table.version, fields)):
                self._shards.advance()
                return changed[0].number
        raise ShardsMoving(self._queue.name, "changed by others again and again")

    def _make_like(self, model: Shard, shard: Shard) -> None:
        """Give a shard that is about to open the options of another one."""
        queue, like = self._shards.at(shard), self._shards.at(model)
        options = options_of((like._run(commands.counts(like.keys, oldest=False))).meta)
        if options.keys() & set(TARGETS):
            configure_with_targets(queue, options)
        elif options:
            queue._run(commands.configure(queue.keys, options))
