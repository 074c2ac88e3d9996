"""A queue in numbers, and whether there is such a queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis

from rqueue.errors import UnknownQueue
from rqueue.model.schedule_info import OVERDUE_MS
from rqueue.protocol import commands
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.queue_keys import queue_exists
from rqueue.protocol.commands.shards import read_shards
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import sharded
from rqueue.protocol.shard_sums import sum_of
from rqueue.transport.redis_client import execute

COUNTERS = (
    *(
        "acked",
        "retried",
        "rejected",
        "released",
        "cancelled",
        "purged",
        "expired",
        "displaced",
        "requeued",
        "moved",
    ),
)
"""Counters that scripts keep in `meta`; they only grow."""

SETTINGS = (
    *("priorities", "max_deliveries", "max_crashes", "keep_ms", "history_rows_max"),
    *("ttl_ms", "ttl_min_ms", "ttl_max_ms", "ttl_dead"),
    *("live_consumers", "strict", "max_consumers", "delete_if", "delete_after_ms", "ring_jobs"),
    *("descending", "sticky", "rebalance"),
    *("max_jobs", "max_bytes", "overflow", "resume", "count_held", "hold", "lifo"),
    "ring_bytes",
    *("dead_letters", "alert_depth"),
)
TARGETS = ("dead_to", "expired_to")


@dataclass(frozen=True, slots=True)
class Bound:
    """A bounded queue: of at most `limit` jobs (0: any number) there are `jobs`, of at most
    `limit_bytes` bytes of envelopes (0: any number) `bytes`; `producers` wait for room, and for
    `granted` jobs of others, `granted_bytes` in all, it is kept."""

    limit: int
    jobs: int
    producers: int
    granted: int
    limit_bytes: int = 0
    bytes: int = 0
    granted_bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether no job fits."""
        return (
            0 < self.limit <= self.jobs + self.granted
            or 0 < self.limit_bytes <= self.bytes + self.granted_bytes
        )


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """One queue in numbers, from one atomic look at `now` (ms, Redis's clock).

    `ready` to `dead` are gauges, and `blocked`: jobs behind others of their groups. `parked` are
    those of `scheduled` that wait for a worker that knows their task. `levels`: the jobs in each
    level in use, also those that have ended and leave at their turn. `accepted` and `counters`
    only grow. `settings` are the options that were set; what is not there has its default. Times
    are ms, 0 = none. `bounded`: of a queue with a limit, None elsewhere. `outgoing`: jobs on their
    way to other queues; `ring_bytes`: of the jobs in a ring with a
    limit in bytes; `unheard`: labels of ready jobs that no registered consumer selects, and
    how many those are; `targets`: where its dead letters and its expired jobs go; `schedules`: how
    many it has, and `next_tick_ms`: the first tick of them, also where that is past. `deferred`:
    jobs that wait for others. `shares`: how many have ready jobs, over all levels.
    """

    name: str
    now: int
    ready: int
    scheduled: int
    parked: int
    held: int
    dead: int
    paused: bool
    consumers: dict[str, int]
    accepted: int
    counters: dict[str, int]
    levels: dict[int, int]
    oldest_enqueued_ms: int
    next_due_ms: int
    history_rows: int
    settings: dict[str, int] = field(default_factory=dict)
    blocked: int = 0
    outgoing: int = 0
    unheard: dict[str, int] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    bounded: Bound | None = None
    schedules: int = 0
    next_tick_ms: int = 0
    deferred: int = 0
    ring_bytes: int = 0
    shares: int = 0

    @property
    def waiting(self) -> int:
        """Jobs that no consumer has yet."""
        return self.ready + self.scheduled + self.blocked

    @property
    def acquiring(self) -> int:
        """Consumers that take jobs: all but the browsers."""
        return sum(self.consumers.values()) - self.consumers["browsers"]

    @property
    def overdue_ms(self) -> int:
        """How long the first tick of a schedule has waited for a consumer that looks; 0 where none
        waits, or the queue is paused."""
        late = self.now - self.next_tick_ms
        return late if self.next_tick_ms and late >= OVERDUE_MS and not self.paused else 0

    @property
    def oldest_ms(self) -> int:
        """Age of the oldest ready job in ms; 0 when none is ready."""
        return max(0, self.now - self.oldest_enqueued_ms) if self.oldest_enqueued_ms else 0


def require_queue(client: redis.Redis, keys: QueueKeys) -> None:
    """Raise UnknownQueue unless it exists."""
    if not execute(client, queue_exists(keys)):
        raise UnknownQueue(keys.queue)


def queue_info(client: redis.Redis, keys: QueueKeys) -> QueueInfo:
    """One queue in numbers; of one that is spread over shards the sums of those that are on this
    server. Raises UnknownQueue."""
    counts = execute(client, commands.counts(keys), queue=keys.queue)
    if not is_there(counts):
        raise UnknownQueue(keys.queue)
    if sharded.POLICY.word in counts.meta.get("v", "").split():
        table = execute(client, read_shards(keys), queue=keys.queue)
        here = [QueueKeys(table.name(one), keys.namespace) for one in table.served if not one.place]
        counts = sum_of([execute(client, commands.counts(its)) for its in here] or [counts])
    return info_of(keys.queue, counts)


def info_of(name: str, counts: commands.Counts) -> QueueInfo:
    """The numbers of a `counts` reply, with the names people know."""
    meta: dict[str, Any] = counts.meta

    def number(field_: str) -> int:
        return int(meta.get(field_, 0))

    return QueueInfo(
        name=name,
        now=counts.now,
        ready=counts.ready,
        scheduled=counts.scheduled,
        parked=counts.parked,
        held=counts.held,
        dead=counts.dead,
        paused=meta.get("paused") == "1",
        consumers={
            "interested": counts.interested,
            "notified": counts.notified,
            "not_interested": counts.not_interested,
            "browsers": counts.browsing,
        },
        # requeued and tail-retried jobs took a second position
        accepted=number("seq") - number("tailed"),
        counters={counter: number(counter) for counter in COUNTERS},
        levels={level: waiting for level, waiting in sorted(counts.levels.items(), reverse=True)},
        oldest_enqueued_ms=counts.oldest_enqueued_ms,
        next_due_ms=counts.next_due_ms,
        history_rows=number("history_rows"),
        settings={name_: number(name_) for name_ in SETTINGS if name_ in meta},
        blocked=counts.blocked,
        outgoing=counts.outgoing,
        unheard=dict(counts.unheard),
        targets={name_: meta[name_] for name_ in TARGETS if name_ in meta},
        bounded=Bound(
            number("max_jobs"),
            counts.more.get("bounded", 0),
            counts.more.get("producers", 0),
            number("granted"),
            number("max_bytes"),
            number("waiting_bytes"),
            number("granted_bytes"),
        )
        if number("max_jobs") or number("max_bytes")
        else None,
        ring_bytes=number("waiting_bytes") if number("ring_bytes") else 0,
        schedules=counts.more.get("schedules", 0),
        next_tick_ms=counts.more.get("next_tick", 0),
        deferred=counts.more.get("deferred", 0),
        shares=counts.more.get("shares", 0),
    )
