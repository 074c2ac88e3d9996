# Generated from rqueue/client/_async/earlier_shards.py (`make generate`): do not edit.
"""Jobs that shards know which their keys have left: what comes again is not stored again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.errors import DuplicateJob, ServerError, ShardsChanged
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol import commands
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.commands.shards import find_known

__all__ = ["Asked", "known_before"]


class Asked(NamedTuple):
    """A job that is about to be enqueued. own: its id was made here, so that nobody knows it. key:
    what said where it goes; "": nothing."""

    place: int
    put: Put
    own: bool
    key: str


def known_before(
    table: ShardTable, jobs: Iterable[Asked], at: Callable[[Shard], QueueCalls]
) -> dict[int, JobHandle[Any]]:
    """The handles of those jobs that shards know which their keys have left, by their places; and
    of those whose unique key has another job there.

    What such a shard does not know by this table, or a later one, it never will: jobs of these keys
    are not let in any more. Raises ShardsChanged where it goes by an earlier table still,
    DuplicateJob, and the server errors: of a shard that was closed and whose server is away nothing
    is known.
    """
    asked: dict[Shard, list[Asked]] = {}
    for job in jobs:
        if job.key and (not job.own or job.put.unique):
            for shard in table.earlier(job.key):
                asked.setdefault(shard, []).append(job)
    found: dict[int, JobHandle[Any]] = {}
    for shard, some in asked.items():
        left = [job for job in some if job.place not in found]
        try:
            found |= _known_to(at(shard), shard, table.version, left)
        except ServerError:
            if shard.state != "closed" or not shard.place:
                raise
    return found


def _known_to(
    queue: QueueCalls, shard: Shard, version: int, jobs: list[Asked]
) -> dict[int, JobHandle[Any]]:
    given = [job for job in jobs if not job.own]
    known = queue._run(find_known(queue.keys, [job.put.id for job in given]))
    if known.version < version and shard.state != "closed":
        raise ShardsChanged(queue.name, known.version, version, "")
    found: dict[int, JobHandle[Any]] = {
        given[at].place: JobHandle(queue, given[at].put.id, created=False)
        for at in sorted(known.places)
    }
    for job in jobs:
        unique = UniqueKey.parse(job.put.unique)
        if job.place in found or unique is None or unique.replaces:
            continue
        other = queue._run(commands.key_owner(queue.keys, unique.key))
        if not other:
            continue
        state = (queue._run(commands.show(queue.keys, other))).state
        said = "done" if state == "ended" else state
        if unique.on_conflict == "raise":
            raise DuplicateJob(queue.name, other, said, job.place)
        found[job.place] = JobHandle(queue, other, created=False, conflict=said)
    return found
