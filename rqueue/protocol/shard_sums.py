"""What several queues are together: numbers of shards as those of one queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rqueue.errors import Undecodable
from rqueue.model.job import DEFAULT_LEVEL, Delivery
from rqueue.protocol.commands.read import Counts
from rqueue.protocol.policies import alternate
from rqueue.protocol.queue_options import LIMITS

__all__ = ["options_of", "sum_of", "turn_of"]


def sum_of(counts: Sequence[Counts]) -> Counts:
    """The numbers of several queues as those of one. `meta` holds the sums of what counts, and of
    options and all else what the first one says."""
    meta = dict(counts[0].meta)
    for name in ("acked", "retried", "rejected", "released", "cancelled", "purged", "requeued"):
        if any(name in its.meta for its in counts):
            meta[name] = str(sum(int(its.meta.get(name, 0)) for its in counts))
    levels, unheard, more = Counter[int](), Counter[str](), Counter[str]()
    for its in counts:
        levels.update(its.levels)
        unheard.update(its.unheard)
        more.update(its.more)
    summed = {
        name: sum(getattr(its, name) for its in counts)
        for name in (
            *("ready", "scheduled", "held", "dead", "interested", "notified", "not_interested"),
            *("browsing", "awaited", "parked", "blocked", "outgoing"),
        )
    }
    times = {
        name: min((at for its in counts if (at := getattr(its, name))), default=0)
        for name in ("oldest_enqueued_ms", "next_due_ms")
    }
    return Counts(
        now=max(its.now for its in counts),
        meta=meta,
        levels=dict(levels),
        unheard=dict(unheard),
        more=dict(more),
        **summed,
        **times,
    )


def turn_of(job: Delivery) -> tuple[int, int]:
    """Where a job that waits stands among those of other shards: by priority, then by when it was
    enqueued."""
    try:
        header = job.header
    except Undecodable:
        return -DEFAULT_LEVEL, 0
    return -header.level, header.enqueued_ms


def options_of(meta: Mapping[str, str]) -> dict[str, int | str]:
    """What a queue like this one is configured with."""
    options: dict[str, int | str] = {
        name: int(meta[name]) for name in LIMITS if meta.get(name, "").lstrip("-").isdigit()
    }
    return options | {name: meta[name] for name in alternate.POLICY.names if meta.get(name)}
