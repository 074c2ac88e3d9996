"""What a job waits for: all jobs of its workflow that have not ended."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from rqueue.model.job import is_mark, parse_header
from rqueue.model.parents import Parents
from rqueue.protocol.commands.flow_notes import gathered_of, jobs_of
from rqueue.protocol.commands.job_notes import notes_of
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

__all__ = ["joined_since", "waited_for"]

PAGE = 500
"""Jobs that one command reads."""


def waited_for(client: redis.Redis, keys: QueueKeys, id: str) -> Iterator[tuple[str, str]]:
    """Queue and id of the jobs that this one waits for, and of those that they wait for: those
    first that wait for others. What has ended is not among them."""
    level = [(keys.queue, id)]
    seen = {*level}
    while level:
        below: list[tuple[str, str]] = []
        for queue, names in _by_queue(level).items():
            its = QueueKeys(queue, keys.namespace)
            for first in range(0, len(names), PAGE):
                some = names[first : first + PAGE]
                for name, value in zip(some, execute(client, jobs_of(its, some)), strict=True):
                    if value is None or is_mark(value):
                        continue
                    if (queue, name) != (keys.queue, id):
                        yield queue, name
                    header = parse_header(value.partition(b";")[0])
                    parents = Parents.parse(header.waits) if header else None
                    if parents is None:
                        continue
                    if parents.open:
                        count = execute(client, gathered_of(its, name)).total
                        parents = parents._replace(total=count or 0)
                    for where in parents.queues or (queue,):
                        below += [(where, parent) for parent in parents.of(name)]
        level = [one for one in dict.fromkeys(below) if one not in seen]
        seen.update(level)


def joined_since(client: redis.Redis, keys: QueueKeys, id: str, first: int) -> Iterator[str]:
    """Ids of the members that have come to a stream, from the place `first` on, and have not
    ended. Nothing comes to it any more: the job that waits for them has ended."""
    while True:
        ids = [f"{id}.{place}" for place in range(first, first + PAGE)]
        values = execute(client, jobs_of(keys, ids))
        ended = [execute(client, notes_of(keys, kind, ids)) for kind in ("ended", "ended_old")]
        if not any(found is not None for page in (values, *ended) for found in page):
            return
        for name, value in zip(ids, values, strict=True):
            if value is not None and not is_mark(value):
                yield name
        first += PAGE


def _by_queue(jobs: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for queue, id_ in jobs:
        found.setdefault(queue, []).append(id_)
    return found
