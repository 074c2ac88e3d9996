"""Which queues a server in memory has, whether there is work in one, and when there is next."""

from __future__ import annotations

from collections.abc import Iterable

from rqueue.protocol.key_table import LEFT_OVER, READY, SCORES
from rqueue.protocol.keys import QueueKeys, queue_of
from rqueue.transport.memory.keyspace import Keyspace
from rqueue.transport.memory.sorted_set import SortedSet

__all__ = ["has_consumers", "has_upkeep", "has_work", "next_due", "queues_in"]

DUE = tuple(name for name, scores in SCORES.items() if scores == "due")


def next_due(db: Keyspace, queues: Iterable[QueueKeys], after_ms: int) -> int | None:
    """The first such time after this one, in ms; None where nothing is due by itself."""
    found: list[float] = []
    for keys in queues:
        for name in DUE:
            times = db.find((keys.base + name).encode(), SortedSet)
            if times is not None:
                found += [score for score, _ in times.order if score > after_ms][:1]
    return int(min(found)) if found else None


WORK = frozenset(name.encode() for name in (*READY, *LEFT_OVER))
"""What keys begin with, up to a colon, that exist while a look at the queue has work to do."""


def queues_in(db: Keyspace) -> list[QueueKeys]:
    """All queues of all namespaces, by their names."""
    found = []
    for key in db.names():
        if key.endswith(b"}:meta"):
            text = key.decode()
            found.append(QueueKeys(queue_of(text), text.partition(":{")[0]))
    return sorted(found, key=lambda keys: (keys.queue, keys.namespace))


def has_work(db: Keyspace, keys: QueueKeys, now_ms: int) -> bool:
    """Whether a consumer that looks at a queue now may have something to do."""
    base = keys.base.encode()
    for key in db.names():
        if key.startswith(base) and key[len(base) :].partition(b":")[0] in WORK:
            return True
    first_ms = next_due(db, [keys], -1)
    return first_ms is not None and first_ms <= now_ms


PLAIN = frozenset(
    (
        *(b"meta", b"jobs", b"scheduled", b"ready", b"due", b"dead", b"causes", b"errors"),
        *(b"ended", b"history", b"consumers", b"consumer", b"held", b"not_interested", b"wake"),
        *(b"result", b"awaited", b"schedules", b"ticks"),
    )
)
"""What keys of a queue begin with, up to a colon, of which nothing has to be looked after but
consumers whose leases have ended."""


def has_upkeep(db: Keyspace, keys: QueueKeys, now_ms: int) -> bool:
    """Whether a supervisor that looks at a queue now may have something to do."""
    base = keys.base.encode()
    for key in db.names():
        if key.startswith(base) and key[len(base) :].partition(b":")[0] not in PLAIN:
            return True
    leases = db.find(keys.consumers.encode(), SortedSet)
    return leases is not None and any(until < now_ms for until, _ in leases.order[:1])


def has_consumers(db: Keyspace) -> bool:
    """Whether a consumer is registered anywhere."""
    return any(key.endswith(b"}:consumers") for key in db.names())
