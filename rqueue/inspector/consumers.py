"""The consumers of a queue: the list each is in, its credit, the jobs it holds, its lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import redis

from rqueue.protocol.commands.admin import read_stop
from rqueue.protocol.commands.consumer_rows import (
    ConsumerRow,
    Leases,
    consumer_row,
    held_ids,
    leases,
    noted_ids,
    registered_names,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute, execute_all


class RunsOn(NamedTuple):
    """A cancelled job whose code was to be stopped, `ms` ago, and is not known to have ended."""

    consumer: str
    id: str
    ms: int

    def __str__(self) -> str:
        return f"job '{self.id}' was cancelled {self.ms / 1000:.0f} s ago, and its code still runs"


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """One consumer.

    `state`: the list it is in. `window_jobs`, `window_bytes`: what it may hold in all (bytes 0: no
    limit). `held`: jobs that it holds; `held_bytes` is kept only where it has a window in bytes.
    `lease_left_ms`: below 0 its lease ended. `slots`: jobs it can run at once. `since_ms`: when it
    registered, ms. `unread`: wake-ups that it has not read. `standby`: 0 = it takes jobs, else its
    place among those that stand by. `stopping`: cancelled jobs whose code still runs.
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
    stopping: tuple[RunsOn, ...] = ()


def list_consumers(client: redis.Redis, keys: QueueKeys) -> list[ConsumerInfo]:
    """All consumers of a queue, by name. Each is read in one step."""
    registered = execute(client, leases(keys))
    names = sorted(registered.ends)
    rows = execute_all(client, [consumer_row(keys, name) for name in names])
    stopping = code_that_runs_on(client, keys, names)
    return [
        replace(
            _info(name, keys.queue, row, registered),
            stopping=tuple(one for one in stopping if one.consumer == name),
        )
        for name, row in zip(names, rows, strict=True)
        if row.fields  # else it left between two looks
    ]


def code_that_runs_on(client: redis.Redis, keys: QueueKeys, among: Sequence[str]) -> list[RunsOn]:
    """The cancelled jobs that still run in these consumers, as far as they run for long."""
    noted = execute_all(client, [noted_ids(keys, name) for name in among])
    found = []
    for name, ids in zip(among, noted, strict=True):
        for id_ in ids:
            stop = execute(client, read_stop(keys, id_), queue=keys.queue)
            if stop.stage in ("requested", "delivered") and not stop.gone:
                found.append(RunsOn(name, id_, stop.now - stop.at_ms))
    return found


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
