"""What the table of a queue's shards asks to be done, without I/O: calls out, replies in.

A change of the table is one step: its version grows, and says what moves. All that follows may be
done by anybody, several at once, and again: who dies leaves it to the next one. It is done by
clients that meet a shard which does not know the version yet, by pools and consumers with each
renewal of their leases and when a shard has a word for them, and by `rqueue shards`.

1. Shards whose keys move are informed first: they refuse who does not know the new version, and
   note their fence, the last position that was given.
2. Then those that get keys: they take jobs from now on, and wait.
3. Where nothing is left before a fence, those that waited for it do so no more.
4. When they wait for none, the move is over; a drained shard without jobs is closed.
5. Ids of jobs whose keys have moved are known to the shard that they were in. Who enqueues an id
   asks those first that its key belonged to before (`ShardTable.earlier`), until all of them say
   that nothing is left from then: that is noted in the table.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from rqueue.errors import QueueDamaged, QueueSharded, RQueueError
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.shards import (
    Informed,
    inform_shard,
    lift_fence,
    read_shards,
    set_shards,
)
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, sharded

__all__ = ["Asked", "Steps", "advancing", "is_spread", "refuse_spread"]

Asked = tuple[Shard | None, ScriptCall[Any]]
"""A call, and the shard that it goes to; None: where the table is."""

Steps = Generator[Asked, Any, ShardTable]
"""Gives calls, is sent their replies or thrown their errors, and returns the table."""


def is_spread(keys: QueueKeys) -> bool:
    """Whether the last call to this queue said that it has shards."""
    return sharded.POLICY.name in KNOWN.get(keys.meta, PLAIN).policies


def refuse_spread(keys: QueueKeys) -> None:
    """Raise QueueSharded where the last call to this queue said that it has shards: its answer says
    nothing of them."""
    if is_spread(keys):
        raise QueueSharded(keys.queue)


def advancing(keys: QueueKeys) -> Steps:
    """Do all that can be done now. Raises the server errors, and QueueDamaged where a shard knows a
    later table than there is; a shard that cannot be reached holds up the others where they wait
    for it."""
    before = -1
    while True:
        table: ShardTable = yield None, read_shards(keys)
        informed = yield from _inform(keys, table)
        if isinstance(informed, str):
            # there is a later version: unless an earlier table was put back
            if table.version == before:
                raise QueueDamaged(
                    keys.queue,
                    keys.shards,
                    problem=f"its table of shards has version {table.version}, and {informed} knows"
                    " a later one",
                )
            before = table.version
            continue
        yield from _lift_left_over(keys, table, informed)
        if table.moving:
            if not (yield from _lift(keys, table, informed)):
                return table
            yield None, set_shards(keys, table.version, {"moving": ""})
            continue
        over = [
            shard
            for shard in table.served
            if shard.state == "draining" and informed[shard.number].empty
        ]
        if not over:
            if table.past and not (yield from _remembered(keys, table, informed)):
                yield None, set_shards(keys, table.version, {"past": ""})
                continue
            return table
        closed = {str(shard.number): shard._replace(state="closed").text for shard in over}
        yield None, set_shards(keys, table.version, closed)


def _inform(keys: QueueKeys, table: ShardTable) -> Generator[Asked, Any, dict[int, Informed] | str]:
    """What each shard that may have jobs says; the name of one that knows a later version."""
    move = table.move
    informed: dict[int, Informed] = {}
    for shard in sorted(table.served, key=lambda shard: shard.number in move.targets):
        role, sources = "", ()  # type: str, tuple[int, ...]
        if shard.number == move.shut or shard.state == "draining":
            role = "shut"
        elif shard.number in move.targets:
            role, sources = "wait", move.sources
        elif shard.number in move.sources:
            role = "fence"
        informed[shard.number] = found = yield from _tell(keys, table, shard, role, sources)
        if found.word == "old":
            return table.name(shard)
    return informed


def _tell(
    keys: QueueKeys,
    table: ShardTable,
    shard: Shard,
    role: str = "",
    sources: tuple[int, ...] = (),
) -> Generator[Asked, Any, Informed]:
    """Inform one shard. The table itself goes along where the shard is to keep it: it knows no
    version without."""
    its = QueueKeys(table.name(shard), keys.namespace)
    what = its, table.queue, table.version, role, sources
    found: Informed = yield shard, inform_shard(*what)
    if found.word == "lacks":
        found = yield shard, inform_shard(*what, table.fields)
    return found


def _lift_left_over(
    keys: QueueKeys, table: ShardTable, informed: dict[int, Informed]
) -> Generator[Asked, Any, None]:
    """Lift the fences of shards that were given up, which the next change may find, and all where
    nothing moves."""
    served = {shard.number for shard in table.served}
    for number, found in informed.items():
        its = QueueKeys(table.name(number), keys.namespace)
        for source in found.fences:
            if not table.moving or source not in served:
                yield table.shards[number], lift_fence(its, table.version, source)


def _remembered(
    keys: QueueKeys, table: ShardTable, informed: dict[int, Informed]
) -> Generator[Asked, Any, bool]:
    """Whether a shard may know ids of jobs whose keys have left it since."""
    if any(found.remembers for found in informed.values()):
        return True
    for number in {change.number for change in table.past}:
        shard = table.shards.get(number)
        if shard is None or shard.state != "closed":
            continue
        try:
            found = yield from _tell(keys, table, shard, "shut")
        except RQueueError:
            return True  # nobody knows
        if found.remembers:
            return True
    return False


def _lift(
    keys: QueueKeys, table: ShardTable, informed: dict[int, Informed]
) -> Generator[Asked, Any, bool]:
    """Lift the fences that nothing stands before; whether all are."""
    move = table.move
    behind = {number for number in move.sources if informed[number].behind}
    for number in move.targets:
        its = QueueKeys(table.name(number), keys.namespace)
        for source in informed[number].fences:
            if source not in behind:
                yield table.shards[number], lift_fence(its, table.version, source)
    return not behind
