"""What the table of a queue's shards asks to be done, without I/O: calls out, replies in.

A change of the table is one step: its version grows, and says what moves. All that follows may be
done by anybody, several at once, and again: who dies leaves it to the next one. It is done by
clients that meet a shard which does not know the version yet, by pools with each renewal of their
leases and when a shard has a word for them, and by `rqueue shards`.

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

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from rqueue.errors import QueueDamaged, RQueueError
from rqueue.logs import logger
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.shards import (
    Informed,
    inform_shard,
    lift_fence,
    read_shards,
    set_shards,
)
from rqueue.protocol.keys import QueueKeys

__all__ = ["aadvance", "advance", "advancing"]

Steps = Generator[tuple[Shard | None, ScriptCall[Any]], Any, ShardTable]
"""Gives calls, with the shard that each goes to (None: where the table is), is sent their replies
or thrown their errors, and returns the table."""

Run = Callable[[Shard | None, ScriptCall[Any]], Any]
ARun = Callable[[Shard | None, ScriptCall[Any]], Awaitable[Any]]

log = logger("rqueue")


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


def _inform(
    keys: QueueKeys, table: ShardTable
) -> Generator[tuple[Shard | None, ScriptCall[Any]], Any, dict[int, Informed] | str]:
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
        its = QueueKeys(table.name(shard), keys.namespace)
        call = inform_shard(its, table.queue, table.version, role, sources)
        informed[shard.number] = found = yield shard, call
        if found.word == "old":
            return its.queue
    return informed


def _remembered(
    keys: QueueKeys, table: ShardTable, informed: dict[int, Informed]
) -> Generator[tuple[Shard | None, ScriptCall[Any]], Any, bool]:
    """Whether a shard may know ids of jobs whose keys have left it since."""
    if any(found.remembers for found in informed.values()):
        return True
    for number in {change.number for change in table.past}:
        shard = table.shards.get(number)
        if shard is None or shard.state != "closed":
            continue
        its = QueueKeys(table.name(number), keys.namespace)
        try:
            found = yield shard, inform_shard(its, table.queue, table.version, "shut")
        except RQueueError:
            return True  # nobody knows
        if found.remembers:
            return True
    return False


def _lift(
    keys: QueueKeys, table: ShardTable, informed: dict[int, Informed]
) -> Generator[tuple[Shard | None, ScriptCall[Any]], Any, bool]:
    """Lift the fences that nothing stands before; whether all are."""
    move = table.move
    behind = {number for number in move.sources if informed[number].behind}
    for number in move.targets:
        its = QueueKeys(table.name(number), keys.namespace)
        for source in informed[number].fences:
            if source not in behind:
                yield table.shards[number], lift_fence(its, table.version, source)
    return not behind


def advance(run: Run, keys: QueueKeys) -> ShardTable:
    """`advancing`, each call by `run`."""
    steps = advancing(keys)
    try:
        asked = next(steps)
        while True:
            try:
                reply = run(*asked)
            except RQueueError as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(reply)
    except StopIteration as end:
        table: ShardTable = end.value
        return table


async def aadvance(run: ARun, keys: QueueKeys) -> ShardTable:
    """`advance` for asyncio."""
    steps = advancing(keys)
    try:
        asked = next(steps)
        while True:
            try:
                reply = await run(*asked)
            except RQueueError as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(reply)
    except StopIteration as end:
        table: ShardTable = end.value
        return table
