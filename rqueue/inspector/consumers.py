"""The consumers of a queue: the list each is in, its credit, the jobs it holds, its lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import redis

from rqueue.inspector.queues import server_now
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import translated

PAGE = 100


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """One consumer.

    `state`: the list it is in. `window_jobs`, `window_bytes`: what it may hold in all (bytes 0: no
    limit). `held`: jobs that it holds; `held_bytes` is kept only where it has a window in bytes.
    `lease_left_ms`: below 0 its lease ended. `slots`: jobs it can run at once. `since_ms`: when it
    registered, ms. `unread`: wake-ups that it has not read.
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


def list_consumers(client: redis.Redis, keys: QueueKeys) -> list[ConsumerInfo]:
    """All consumers of a queue, by name. Each is read in one step."""
    with translated(client, queue=keys.queue):
        leases = cast(
            "list[tuple[bytes, float]]", client.zrange(keys.consumers, 0, -1, withscores=True)
        )
        timer = cast("bytes | None", client.hget(keys.meta, "timer"))
        now = server_now(client, keys)
        found: list[ConsumerInfo] = []
        names = sorted((name.decode(), lease) for name, lease in leases)
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            with client.pipeline(transaction=True) as pipe:
                for name, _ in page:
                    pipe.hgetall(keys.consumer(name))
                    pipe.llen(keys.held(name))
                    pipe.llen(keys.wake(name))
                replies: list[Any] = pipe.execute()
            for i, (name, lease) in enumerate(page):
                row, held, unread = replies[3 * i : 3 * i + 3]
                if row:  # else it left between two looks
                    found.append(
                        _info(name, keys.queue, row, held, unread, lease - now, timer or b"")
                    )
    return found


def held_by_consumer(client: redis.Redis, keys: QueueKeys) -> dict[str, list[str]]:
    """The ids that each registered consumer holds, in the order in which it acquired them."""
    with translated(client, queue=keys.queue):
        names = cast("list[bytes]", client.zrange(keys.consumers, 0, -1))
        held = [
            cast("list[bytes]", client.lrange(keys.held(name.decode()), 0, -1)) for name in names
        ]
    return {
        name.decode(): [id_.decode() for id_ in ids] for name, ids in zip(names, held, strict=True)
    }


def _info(
    name: str,
    queue: str,
    row: dict[bytes, bytes],
    held: int,
    unread: int,
    lease_left: float,
    timer: bytes,
) -> ConsumerInfo:
    def text(field: bytes) -> str:
        return row.get(field, b"").decode(errors="replace")

    def number(field: bytes) -> int:
        return int(float(row.get(field) or 0))

    return ConsumerInfo(
        name=name,
        queue=queue,
        state=text(b"state"),
        mode=text(b"mode"),
        priority=number(b"priority"),
        window_jobs=number(b"jobs"),
        window_bytes=number(b"bytes"),
        held=held,
        held_bytes=number(b"held_bytes"),
        lease_left_ms=round(lease_left),
        slots=number(b"slots"),
        worker=text(b"worker"),
        term=text(b"term"),
        since_ms=number(b"since"),
        unread=unread,
        timer=timer.decode(errors="replace") == name,
    )
