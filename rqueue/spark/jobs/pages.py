"""Jobs of a queue page by page, from where to where: what one partition of a read looks at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from rqueue.model.job import Delivery, sort_key
from rqueue.protocol import commands
from rqueue.protocol.commands.consumer_rows import registered_names, worker_of
from rqueue.protocol.commands.flow_notes import jobs_of
from rqueue.protocol.commands.job_notes import notes_of, notes_page
from rqueue.protocol.commands.places import ListKind, id_at, job_value, last_time, list_length
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.paging import entries, read_pages, waiting
from rqueue.spark.patience import Reader

__all__ = ["Found", "Part", "pages", "plan"]

_LISTS: dict[str, ListKind] = {"d": "due", "r": "ready"}
_PLACE = re.compile(r"\d+[dr](\d+)\.(\d+)(?:@\d+)?")
_SHIFT = 53
_LEVELS = 10


@dataclass(frozen=True, slots=True)
class Part:
    """One partition: a stretch of one waiting list (`after` is not in it, `until` is; see
    `place_of`), or all of the schedule, of the dead letters, or of the jobs that consumers hold.

    which: `ready`, `heads` (ready ones with groups or keys), `blocked`, `scheduled`, `deferred`,
    `dead` or `held`. level, list: of `ready`: the level, and `d` or `r` for promoted or ordinary
    jobs. levels: how many the queue has. until: place, due time or time of death (ms) of what is
    the last one when the read is planned.
    """

    queue: str
    which: str
    until: int = 0
    level: int = 0
    list: str = "r"
    after: int = 0
    levels: int = _LEVELS


class Found(NamedTuple):
    """A job as it was found. `due_ms` is None where its header says when. `cause` is JSON."""

    state: str
    job: Delivery
    due_ms: int | None = None
    consumer: str = ""
    worker: str = ""
    cause: bytes = b""


# -- planning --------------------------------------------------------------------------------------


def plan(
    reader: Reader, keys: QueueKeys, states: set[str], levels: set[int] | None, step: int
) -> list[Part]:
    """The parts in which jobs of these states (and, of waiting ones, these levels; None: all) are
    read; of a long waiting list about `step` jobs each."""
    counts = reader.run(commands.counts(keys, oldest=False), queue=keys.queue)
    parts: list[Part] = []
    if "ready" in states:
        ends = {
            "d": (counts.now + 1) << _SHIFT,
            "r": int(counts.meta.get("seq", "0")),
        }
        most = int(counts.meta.get("priorities", _LEVELS))
        for level in sorted(counts.levels, reverse=True):
            if counts.levels[level] and (levels is None or level in levels):
                for list_, until in ends.items():
                    parts += _stretches(reader, keys, level, list_, until, step, most)
    kind = counts.meta.get("v", "").split()
    if "groups" in kind and "blocked" in states:
        parts.append(Part(keys.queue, "blocked"))
    if {"groups", "last_value", "hold", "sorted", "refusals"} & {*kind} and "ready" in states:
        parts.append(Part(keys.queue, "heads"))
    if counts.scheduled and ("scheduled" in states or (counts.parked and "parked" in states)):
        last = reader.run(last_time(keys, "scheduled"))
        if last is not None:
            parts.append(Part(keys.queue, "scheduled", last))
    if counts.more.get("deferred") and "deferred" in states:
        parts.append(Part(keys.queue, "deferred"))
    if counts.dead and "dead" in states:
        last = reader.run(last_time(keys, "dead"))
        if last is not None:
            parts.append(Part(keys.queue, "dead", last))
    if counts.held and "held" in states:
        parts.append(Part(keys.queue, "held"))
    return parts


def _stretches(
    reader: Reader,
    keys: QueueKeys,
    level: int,
    list_: str,
    until: int,
    step: int,
    levels: int,
) -> Iterator[Part]:
    kind = _LISTS[list_]
    count = reader.run(list_length(keys, kind, level))
    if not count:
        return

    def place_at(index: int) -> int:
        """The place of an element of the list; 0 where there is no such job."""
        value = reader.run(job_value(keys, reader.run(id_at(keys, kind, level, index))))
        return 0 if value is None else place_of(value)

    if list_ == "d":
        # what is due in this very moment, and not in the list yet, is read in the schedule
        until = place_at(count - 1) or until
    after = 0
    pieces = -(-count // step)
    for piece in range(1, pieces):
        place = place_at(count * piece // pieces)
        # a job that has gone meanwhile marks no border: its stretch becomes part of the next
        if after < place < until:
            yield Part(keys.queue, "ready", place, level, list_, after, levels)
            after = place
    yield Part(keys.queue, "ready", until, level, list_, after, levels)


def place_of(value: bytes) -> int:
    """Where a job or a mark stands in its list, as one number: due time, then position."""
    order = sort_key(value.partition(b";")[0])
    return 0 if order is None else order[0] << _SHIFT | order[1]


# -- reading ---------------------------------------------------------------------------------------


def pages(
    reader: Reader, keys: QueueKeys, part: Part, states: set[str], size: int
) -> Iterator[list[Found]]:
    """The jobs of a part, `size` at a time; the next page is read when it is asked for."""
    if part.which == "ready":
        return _ready(reader, keys, part, size)
    if part.which in ("heads", "blocked"):
        return _once(_of_heads(reader, keys, part.which, size))
    if part.which == "held":
        return _once(_held(reader, keys, size))
    if part.which == "deferred":
        return _once(_deferred(reader, keys, size))
    if part.which == "dead":
        return _once(_dead(reader, keys, part, size))
    return _once(_scheduled(reader, keys, part, states, size))


def _ready(reader: Reader, keys: QueueKeys, part: Part, size: int) -> Iterator[list[Found]]:
    mine = f"{part.level}{part.list}"
    others = ",".join(
        f"{level}{list_}-"
        for level in range(part.levels)
        for list_ in _LISTS
        if f"{level}{list_}" != mine
    )
    at, place = part.after, f"{mine}{part.after & (1 << _SHIFT) - 1}.{part.after >> _SHIFT}"
    while at < part.until:
        page = reader.run(commands.browse(keys, f"{others},{place}", size), queue=keys.queue)
        found = [Found("ready", job) for job in page.jobs]
        before = at
        for token in page.cursor.split(","):
            if (reached := _PLACE.fullmatch(token)) is not None:
                place, at = token, int(reached[2]) << _SHIFT | int(reached[1])
        if at > part.until:
            found = [one for one in found if place_of(one.job.value) <= part.until]
        yield found
        if at == before:
            return


def _of_heads(reader: Reader, keys: QueueKeys, which: str, size: int) -> Iterator[list[Found]]:
    cursor = f"{'only' if which == 'blocked' else which},"
    state = "blocked" if which == "blocked" else "ready"
    run = partial(reader.run, queue=keys.queue)
    for page in read_pages(waiting(keys, cursor, size), run):
        yield [Found(state, job) for job in page.jobs]


def _entries(
    reader: Reader, keys: QueueKeys, which: str, size: int
) -> Iterator[Sequence[commands.read.Entry]]:
    run = partial(reader.run, queue=keys.queue)
    for page in read_pages(entries(keys, which, limit=size), run):
        yield page.entries


def _scheduled(
    reader: Reader, keys: QueueKeys, part: Part, states: set[str], size: int
) -> Iterator[list[Found]]:
    for some in _entries(reader, keys, "scheduled", size):
        why = reader.run(notes_of(keys, "parked", [entry.job.id for entry in some]))
        found = []
        for entry, parked in zip(some, why, strict=True):
            state = "scheduled" if parked is None else "parked"
            if state in states and entry.score <= part.until:
                found.append(Found(state, entry.job, int(entry.score), cause=parked or b""))
        yield found
        if some and some[-1].score > part.until:
            return


def _deferred(reader: Reader, keys: QueueKeys, size: int) -> Iterator[list[Found]]:
    cursor = 0
    while True:
        page = reader.run(notes_page(keys, "deferred", cursor, count=size))
        ids = list(page.notes)
        values = reader.run(jobs_of(keys, ids))
        yield [
            Found("deferred", Delivery(id_, value))
            for id_, value in zip(ids, values, strict=True)
            if value is not None
        ]
        if not (cursor := page.cursor):
            return


def _dead(reader: Reader, keys: QueueKeys, part: Part, size: int) -> Iterator[list[Found]]:
    for some in _entries(reader, keys, "dead", size):
        yield [
            Found("dead", entry.job, cause=entry.cause)
            for entry in some
            if entry.score <= part.until
        ]
        if some and some[-1].score > part.until:
            return


def _held(reader: Reader, keys: QueueKeys, size: int) -> Iterator[list[Found]]:
    for name in sorted(reader.run(registered_names(keys))):
        worker = reader.run(worker_of(keys, name))
        for some in _entries(reader, keys, f"held:{name}", size):
            yield [Found("held", entry.job, consumer=name, worker=worker) for entry in some]


def _once(found: Iterator[list[Found]]) -> Iterator[list[Found]]:
    """Each job once: it may leave, and come back further on, while it is read."""
    seen: set[bytes] = set()
    for page in found:
        fresh = []
        for one in page:
            # a digest takes half the room of an id
            mark = blake2b(one.job.id.encode("utf-8", "surrogateescape"), digest_size=12).digest()
            if mark not in seen:
                seen.add(mark)
                fresh.append(one)
        yield fresh
