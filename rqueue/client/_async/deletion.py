"""Deleting a queue, in steps that may be repeated by anybody."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.client._async.queue_moving import AsyncQueueMoving
from rqueue.errors import ConfigError, QueueInUse, RegistrationLost, UnknownQueue
from rqueue.model.names import check_queue
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import SLICE
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.forwarding import aforward
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import is_spread, refuse_spread
from rqueue.text.numbers import many

__all__ = ["delete_queue"]

IDLE_MOST = 3
"""Rounds that change nothing."""

NAMED_MOST = 10
"""Jobs that an error names."""


async def delete_queue(
    queue: AsyncQueueMoving, *, jobs: bool = False, consumers: bool = False, jobs_to: str = ""
) -> int:
    """See `AsyncQueue.delete`."""
    if jobs_to and (jobs_to == queue.name or not await _there(queue, check_queue(jobs_to))):
        raise ConfigError("jobs_to", f"there is no other queue '{jobs_to}'")
    if jobs_to:
        refuse_spread(_keys(queue, jobs_to))
    targets = await _targets(queue, queue.name)
    if is_spread(queue.keys) and (left := await queue.shards_left()):
        raise QueueInUse(
            queue.name,
            f"{many(len(left), 'shard')}: 'rqueue delete {queue.name}' deletes them with it",
        )
    if jobs_to and not jobs and (stays := await queue._refused_by(jobs_to)):
        raise _stay(queue.name, jobs_to, stays, 0)
    ended = went = idle = 0
    while True:
        call = commands.delete(
            queue.keys, jobs=jobs or bool(jobs_to), consumers=consumers, to=jobs_to
        )
        found = await queue._run(call)
        if found.word == "unknown":
            raise UnknownQueue(queue.name)
        if found.word == "target":
            await _forget_sources(queue, found.names)
            continue
        if found.word != "deleting":
            raise _in_use(queue.name, found)
        for name in found.names:
            await _take_off(queue, name)
        moved = 0
        if found.to and found.jobs:
            moved = await queue.move_all(found.to)
            went += moved
            stays = {} if jobs else {**await queue._refused_by(found.to), **moved.stayed}
            if stays:
                await queue._run(commands.delete(queue.keys, back=True))
                raise _stay(queue.name, found.to, stays, went)
        done = 0
        if not found.to or jobs or not found.jobs:
            # of jobs that have gone nothing but the marks of ended ones is left
            done, _ = await queue._run(commands.purge(queue.keys, SLICE, scheduled=True))
            if found.dead:
                done += await queue._run(commands.purge_dead(queue.keys, found.dead))
            ended += done
        if found.outgoing:
            await aforward(queue._run, queue.keys)
        if found.names or done or moved:
            idle = 0
            continue
        if await queue._run(commands.delete_end(queue.keys)) != "left":
            break
        idle += 1
        if idle == IDLE_MOST:
            raise _stuck(queue.name, found)
    for target in targets:
        await queue._run(commands.link(_keys(queue, target), queue.name, ()))
    return ended + went


def _keys(queue: AsyncQueueCalls, name: str) -> QueueKeys:
    return QueueKeys(name, queue.keys.namespace)


async def _targets(queue: AsyncQueueCalls, name: str) -> set[str]:
    meta = (await queue._run(commands.counts(_keys(queue, name), oldest=False))).meta
    return {meta.get("dead_to", ""), meta.get("expired_to", "")} - {""}


async def _forget_sources(queue: AsyncQueueCalls, sources: list[str]) -> None:
    """Those that send nothing here: what noted them did not get further. Raises QueueInUse."""
    for source in sources:
        if queue.name in await _targets(queue, source):
            raise QueueInUse(queue.name, f"dead letters or expired jobs of queue '{source}'")
        await queue._run(commands.link(queue.keys, source, ()))


async def _take_off(queue: AsyncQueueCalls, name: str) -> None:
    try:
        while (await queue._run(commands.reclaim(queue.keys, name, b"{}", ()))).held:
            pass
    except RegistrationLost:
        pass  # it left meanwhile


async def _there(queue: AsyncQueueCalls, name: str) -> bool:
    return is_there(await queue._run(commands.counts(_keys(queue, name), oldest=False)))


def _stay(name: str, target: str, stays: Mapping[str, str], went: int) -> QueueInUse:
    """Jobs that cannot go to the target; it is not deleted."""
    named = "; ".join(f"{id_}: {why}" for id_, why in islice(stays.items(), NAMED_MOST))
    more = "; ..." if len(stays) > NAMED_MOST else ""
    before = f"{many(went, 'job')} went there before; " if went else ""
    return QueueInUse(
        name,
        f"jobs that cannot go to queue '{target}' ({named}{more}); {before}end them or move them,"
        " or delete it with jobs=True (--jobs) as well, by which they end as purged",
    )


def _stuck(name: str, found: commands.Deletion) -> QueueInUse:
    if found.outgoing:
        return QueueInUse(
            name,
            f"{many(found.outgoing, 'job')} on their way to other queues: another process sends"
            " them, or their queues refuse them; delete it again",
        )
    return QueueInUse(name, f"{many(found.jobs, 'job')} in no place: rqueue doctor --repair")


def _in_use(name: str, found: commands.Deletion) -> QueueInUse:
    if found.word == "jobs":
        return QueueInUse(name, many(found.jobs + found.outgoing, "job"))
    return QueueInUse(name, many(len(found.names), "consumer"))
