"""A queue in numbers, and whether there is such a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import redis

from rqueue.errors import ServerError, UnknownQueue
from rqueue.inspector.parts import Parts
from rqueue.model.schedule_info import OVERDUE_MS
from rqueue.protocol import commands
from rqueue.protocol.commands.consumer_rows import last_lease
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.queue_keys import queue_exists
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.waiting import LEASE_GRACE_MS
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
    level in use, also those that have ended and leave at their turn. `accepted` and `counters` only
    grow. `settings` are the options that were set; what is not there has its default. Times are ms,
    0 = none. `bounded`: of a queue with a limit, None elsewhere. `outgoing`: jobs on their way to
    other queues; `ring_bytes`: of the jobs in a ring with a limit in bytes; `unheard`: labels of
    ready jobs that no registered consumer selects, and how many those are; `targets`: where its
    dead letters and its expired jobs go; `schedules`: how many it has, and `next_tick_ms`: the
    first tick of them, also where that is past. `deferred`: jobs that wait for others. `shares`:
    how many have ready jobs, over all levels. `shards`: over how many it is spread, 0 = it is not;
    `fences`: of a shard, those whose earlier jobs it waits for; `fenced`: others wait for its own.
    `forsaken_ms`: of one with waiting jobs, for how long all leases of its consumers have been
    over, with no pool alive to reclaim these; 0 elsewhere.
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
    shards: int = 0
    fences: tuple[int, ...] = ()
    fenced: bool = False
    forsaken_ms: int = 0

    @property
    def waiting(self) -> int:
        """Jobs that no consumer has yet."""
        return self.ready + self.scheduled + self.blocked

    @property
    def acquiring(self) -> int:
        """Consumers that take jobs: all but the browsers."""
        return sum(self.consumers.values()) - self.consumers["browsers"]

    @property
    def serving(self) -> int:
        """Those of them that may be alive: none, where all their leases have ended."""
        return 0 if self.forsaken_ms else self.acquiring

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


class Survey(NamedTuple):
    """One look at all that a name stands for. whole: the queue in numbers, of one that is spread
    the sums of its shards. each: those, by name. missing: shards that could not be asked, and why:
    the sums are without them."""

    whole: QueueInfo
    each: dict[str, QueueInfo]
    missing: dict[str, ServerError]


def queue_info(client: redis.Redis, keys: QueueKeys) -> QueueInfo:
    """One queue in numbers. Raises UnknownQueue."""
    counts = execute(client, commands.counts(keys), queue=keys.queue)
    if not is_there(counts):
        raise UnknownQueue(keys.queue)
    return _looked(client, keys, counts)


def _looked(client: redis.Redis, keys: QueueKeys, counts: commands.Counts) -> QueueInfo:
    """The numbers of a `counts` reply; where jobs wait beside consumers, these are looked at."""
    info = info_of(keys.queue, counts)
    if not info.waiting or not info.acquiring:
        return info
    call = last_lease(keys, info.consumers["browsers"])
    ended = info.now - execute(client, call, queue=keys.queue)
    return replace(info, forsaken_ms=round(ended)) if ended > LEASE_GRACE_MS else info


def survey(parts: Parts) -> Survey:
    """All that a name stands for, in numbers. Raises UnknownQueue, and ConnectionLost where none of
    its shards can be asked."""
    if parts.table is None:
        (part,) = parts
        info = queue_info(part.client, part.keys)
        return Survey(info, {info.name: info}, {})
    each, missing = parts.each(
        lambda part: _looked(
            part.client,
            part.keys,
            execute(part.client, commands.counts(part.keys), queue=part.name),
        )
    )
    if not each:
        raise parts.missing_error(missing)
    return Survey(sum_of(parts.queue, [*each.values()], len(parts.table.served)), each, missing)


def info_of_all(parts: Parts) -> QueueInfo:
    """All that a name stands for as one queue. Raises UnknownQueue, and ConnectionLost, which names
    the shard, where one cannot be asked."""
    found = survey(parts)
    if found.missing:
        raise parts.missing_error(found.missing)
    return found.whole


def sum_of(name: str, shards: Sequence[QueueInfo], served: int) -> QueueInfo:
    """Shards in numbers as one queue. Clocks of different servers differ: times are those of the
    latest one. `settings` and `targets` are those of the first; it is paused where all are."""

    def total(field_: str) -> int:
        return sum(getattr(one, field_) for one in shards)

    def merged(field_: str) -> dict[Any, int]:
        found: Counter[Any] = Counter()
        for one in shards:
            found.update(getattr(one, field_))
        return dict(found)

    now = max(one.now for one in shards)
    oldest = max(one.oldest_ms for one in shards)
    dues = [one.next_due_ms - one.now for one in shards if one.next_due_ms]
    bounds = [one.bounded for one in shards if one.bounded]
    gauges = ("ready", "scheduled", "parked", "held", "dead", "accepted", "history_rows")
    more = ("blocked", "outgoing", "deferred", "ring_bytes", "shares", "schedules")
    sums: dict[str, Any] = {field_: total(field_) for field_ in (*gauges, *more)}
    return QueueInfo(
        name=name,
        now=now,
        paused=all(one.paused for one in shards),
        consumers=merged("consumers"),
        counters=merged("counters"),
        levels=dict(sorted(merged("levels").items(), reverse=True)),
        oldest_enqueued_ms=now - oldest if any(one.oldest_enqueued_ms for one in shards) else 0,
        next_due_ms=now + min(dues) if dues else 0,
        settings=shards[0].settings,
        unheard=merged("unheard"),
        targets=shards[0].targets,
        bounded=Bound(*(sum(column) for column in zip(*map(_numbers, bounds), strict=True)))
        if bounds
        else None,
        shards=served,
        forsaken_ms=max(one.forsaken_ms for one in shards),
        **sums,
    )


def _numbers(bound: Bound) -> tuple[int, ...]:
    return tuple(getattr(bound, one.name) for one in fields(bound))


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
        # while its fences stand a shard is paused by them, and says aside what people asked for
        paused=("fenced_pause" in meta) if "fences" in meta else meta.get("paused") == "1",
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
        fences=tuple(int(one) for one in str(meta.get("fences", "")).split() if one.isdecimal()),
        fenced="fence" in meta,
    )
