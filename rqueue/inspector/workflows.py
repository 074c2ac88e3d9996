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


def waited_for(client: redis.Redis, keys: QueueKeys, id: str) -> Iterator[str]:
    """The ids of the jobs that this one waits for, and of those that they wait for: those first
    that wait for others. What has ended is not among them."""
    level = [id]
    seen = {id}
    while level:
        below: list[str] = []
        for first in range(0, len(level), PAGE):
            some = level[first : first + PAGE]
            for name, value in zip(some, execute(client, jobs_of(keys, some)), strict=True):
                if value is None or is_mark(value):
                    continue
                if name != id:
                    yield name
                header = parse_header(value.partition(b";")[0])
                parents = Parents.parse(header.waits) if header else None
                below += parents.of(name) if parents else ()
        level = [name for name in dict.fromkeys(below) if name not in seen]
        seen.update(level)
