"""The consumers of a queue: the list each is in, its credit, the jobs it holds, its lease."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from rqueue.protocol.commands.consumer_rows import (
    ConsumerRow,
    Leases,
    consumer_row,
    held_ids,
    leases,
    registered_names,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute, execute_all


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """One consumer.

    `state`: the list it is in. `window_jobs`, `window_bytes`: what it may hold in all (bytes 0: no
    limit). `held`: jobs that it holds; `held_bytes` is kept only where it has a window in bytes.
    `lease_left_ms`: below 0 its lease ended. `slots`: jobs it can run at once. `since_ms`: when it
    registered, ms. `unread`: wake-ups that it has not read. `standby`: 0 = it takes jobs, else its
    place among those that stand by.
    """

    name: str
    queue: str
    state: str
    mode: str
    priority: int
    window_jobs: int
    window_bytes: int
    held: int
    held_bytes: int
    lease_left_ms: int
    slots: int
    worker: str
    term: str
    since_ms: int
    unread: int
    timer: bool
    standby: int = 0


def list_consumers(client: redis.Redis, keys: QueueKeys) -> list[ConsumerInfo]:
    """All consumers of a queue, by name. Each is read in one step."""
    registered = execute(client, leases(keys))
    names = sorted(registered.ends)
    rows = execute_all(client, [consumer_row(keys, name) for name in names])
    return [
        _info(name, keys.queue, row, registered)
        for name, row in zip(names, rows, strict=True)
        if row.fields  # else it left between two looks
    ]


def held_by_consumer(client: redis.Redis, keys: QueueKeys) -> dict[str, list[str]]:
    """The ids that each registered consumer holds, in the order in which it acquired them."""
    names = execute(client, registered_names(keys))
    held = execute_all(client, [held_ids(keys, name) for name in names])
    return dict(zip(names, held, strict=True))


def _info(name: str, queue: str, row: ConsumerRow, registered: Leases) -> ConsumerInfo:
    fields, number = row.fields, row.number
    return ConsumerInfo(
        name=name,
        queue=queue,
        state=fields.get("state", ""),
        mode=fields.get("mode", ""),
        priority=number("priority"),
        window_jobs=number("jobs"),
        window_bytes=number("bytes"),
        held=row.held,
        held_bytes=number("held_bytes"),
        lease_left_ms=round(registered.ends[name] - registered.now),
        slots=number("slots"),
        worker=fields.get("worker", ""),
        term=fields.get("term", ""),
        since_ms=number("since"),
        unread=row.unread,
        timer=registered.timer == name,
        standby=registered.standbys.index(name) + 1 if name in registered.standbys else 0,
    )
