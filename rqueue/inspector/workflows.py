"""What a job waits for: all jobs of its workflow that have not ended."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from rqueue.model.job import is_mark, parse_header
from rqueue.model.parents import Parents
from rqueue.protocol.commands.flow_notes import jobs_of
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

__all__ = ["waited_for"]

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
                    for where in parents.queues or (queue,):
                        below += [(where, parent) for parent in parents.of(name)]
        level = [one for one in dict.fromkeys(below) if one not in seen]
        seen.update(level)


def _by_queue(jobs: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for queue, id_ in jobs:
        found.setdefault(queue, []).append(id_)
    return found
