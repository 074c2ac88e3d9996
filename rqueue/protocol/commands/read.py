"""Build the calls that look and change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rqueue.model.job import Delivery
from rqueue.model.selector import class_shown
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.keys import QueueKeys

PAGE_MAX = 500

TAIL = "tail"
"""The cursor behind all that waits now."""


class Page(NamedTuple):
    """Waiting jobs in their order. `cursor` continues behind the last one, whatever happens to the
    queue meanwhile. more: False at the tail; a page without jobs may have more behind it."""

    now: int
    cursor: str
    jobs: list[Delivery]
    blocked: int
    """How many of them, the last ones, wait behind others of their groups."""
    more: bool


class Entry(NamedTuple):
    """A job in the schedule (score: due ms), the dead letters (score: ms of its death; cause JSON)
    or what a consumer holds (score: its place there)."""

    job: Delivery
    score: float
    cause: bytes


class EntryPage(NamedTuple):
    """`cursor` goes into the next call, until `more` is False."""

    now: int
    cursor: tuple[str, str]
    entries: list[Entry]
    more: bool


class Counts(NamedTuple):
    """A queue in numbers. `parked`: of the scheduled, those that wait for a worker that knows their
    task. `levels`: level -> elements, cancelled ones that no head passed yet included (`marked` of
    them in all); `ready` is exact. `blocked`: those behind others of their groups. `outgoing`: jobs
    on their way to other queues. `unheard`: labels, as people read them, of ready jobs that no
    registered consumer selects -> jobs. Times are ms, 0 = none."""

    now: int
    meta: dict[str, str]
    levels: dict[int, int]
    ready: int
    scheduled: int
    held: int
    dead: int
    interested: int
    notified: int
    not_interested: int
    browsing: int
    awaited: int
    oldest_enqueued_ms: int
    next_due_ms: int
    parked: int
    blocked: int = 0
    outgoing: int = 0
    unheard: Mapping[str, int] = MappingProxyType({})
    more: Mapping[str, int] = MappingProxyType({})
    """What the queue's policies count."""

    @property
    def last_position(self) -> int:
        """The position of the newest job, which no clock changes: later jobs have greater ones."""
        return int(self.meta.get("seq", "0"))

    @property
    def version(self) -> str:
        """Another text once a job has come, gone, or changed its state (C-15): a listing that was
        read under this version is as it was while the version is the same. Nothing is kept for it:
        what comes back to a gauge has moved a counter, so no two versions are the same by chance.
        Only equal ones can be compared."""
        moves = sum(int(self.meta.get(name, "0")) for name in _MOVES)
        gauges = self.ready, self.scheduled, self.held, self.dead, self.blocked, self.outgoing
        return "-".join(map(str, (moves, *gauges)))


_MOVES = (
    *("seq", "acked", "retried", "rejected", "released", "cancelled", "purged", "expired"),
    *("displaced", "requeued", "moved"),
)
"""Counters of `meta` that only grow."""


class Shown(NamedTuple):
    """One job, raw. state: ready, scheduled, held, dead, ended, unknown. place: jobs before it in
    its level, -1 where that means nothing."""

    now: int
    state: str
    value: bytes
    errors: bytes
    cause: bytes
    record: bytes
    holder: str
    place: int


def _pairs(flat: list[Any]) -> list[Delivery]:
    return [Delivery(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _read_counts(reply: Any) -> Counts:
    now, meta, levels, scheduled, held, dead, consumers, awaited, oldest, due, *others = reply
    parked, outgoing, classes, *more = others
    facts = {text(meta[i]): text(meta[i + 1]) for i in range(0, len(meta), 2)}
    waiting = {levels[i]: levels[i + 1] for i in range(0, len(levels), 2)}
    ready = sum(waiting.values()) - int(facts.get("marked", "0"))
    interested, notified, not_interested, browsing = consumers
    return Counts(
        now=now,
        meta=facts,
        levels=waiting,
        ready=ready,
        scheduled=scheduled,
        held=held,
        dead=dead,
        interested=interested,
        notified=notified,
        not_interested=not_interested,
        browsing=browsing,
        awaited=awaited,
        oldest_enqueued_ms=oldest,
        next_due_ms=due,
        parked=parked,
        blocked=int(facts.get("blocked", "0")),
        outgoing=outgoing,
        unheard={class_shown(text(classes[i])): classes[i + 1] for i in range(0, len(classes), 2)},
        more={text(more[i]): int(more[i + 1]) for i in range(0, len(more), 2)},
    )


def _read_shown(reply: Any) -> Shown:
    now, state, value, errors, cause, record, holder, place = reply
    return Shown(now, text(state), value, errors, cause, record, text(holder), place)


def browse(keys: QueueKeys, cursor: str = "", limit: int = 100) -> ScriptCall[Page]:
    """A page of waiting jobs in order, highest level first (Q-29). From `TAIL` on it is empty, and
    its cursor is that place. `rqueue.protocol.paging` reads them all."""

    def read(reply: Any) -> Page:
        after, _, blocked = text(reply[1]).partition("#")
        return Page(reply[0], after, _pairs(reply[2:]), int(blocked or 0), after != cursor)

    return ScriptCall("browse", keys.meta, [cursor, limit], read)


def browse_set(
    keys: QueueKeys, which: str, cursor: tuple[str, str] = ("-inf", ""), limit: int = 100
) -> ScriptCall[EntryPage]:
    """A page of `scheduled`, `dead` or `held:<consumer>`."""

    def read(reply: Any) -> EntryPage:
        flat = reply[3:]
        entries = [
            Entry(Delivery(flat[i], flat[i + 1]), float(flat[i + 2]), flat[i + 3])
            for i in range(0, len(flat), 4)
        ]
        after = (text(reply[1]), reply[2].decode("utf-8", "surrogateescape"))
        return EntryPage(reply[0], after, entries, after != cursor)

    score, member = cursor
    args: list[Arg] = [which, score, member.encode("utf-8", "surrogateescape"), limit]
    return ScriptCall("browse_set", keys.meta, args, read)


def counts(keys: QueueKeys, *, oldest: bool = True) -> ScriptCall[Counts]:
    """Exact gauges and counters in one look."""
    return ScriptCall("counts", keys.meta, ["1" if oldest else "0"], _read_counts)


def show(keys: QueueKeys, id: str) -> ScriptCall[Shown]:
    """One job, wherever it is."""
    return ScriptCall("show", keys.meta, [id], _read_shown)
