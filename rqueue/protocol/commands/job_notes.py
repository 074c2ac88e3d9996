"""Build the calls that read what a queue keeps of its jobs beside them: why they are parked, their
errors and causes, the records of those that ended, who waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import pairs, raw_text, score, scores

Notes = Literal[
    "parked", "errors", "causes", "ended", "ended_old", "awaited", "byte_waiters", "deferred"
]
"""Which notes: names of `QueueKeys`; each is a hash by the ids of jobs."""


class NotesPage(NamedTuple):
    """Some notes, by the ids of their jobs, in no order. `cursor` continues; 0: these were the
    last."""

    cursor: int
    notes: dict[str, bytes]


class ExpiryPage(NamedTuple):
    """Some waiting jobs by the ids, and when each expires (ms). `cursor` continues; 0: the last."""

    cursor: int
    ends: dict[str, float]


def _read_expiries(replies: Sequence[Any]) -> ExpiryPage:
    ((cursor, found),) = replies
    return ExpiryPage(int(cursor), scores(found))


def _read_page(replies: Sequence[Any]) -> NotesPage:
    ((cursor, found),) = replies
    return NotesPage(int(cursor), {raw_text(id): note for id, note in pairs(found).items()})


def _read_each(replies: Sequence[Any]) -> list[bytes | None]:
    return list(replies[0]) if replies else []


def _read_began(replies: Sequence[Any]) -> list[int]:
    notes = replies[0] if replies else []
    return [0 if note is None else int(raw_text(note).rpartition(",")[2]) for note in notes]


def _read_sizes(replies: Sequence[Any]) -> list[int]:
    return [int(size) for size in replies]


def _read_scores(replies: Sequence[Any]) -> list[float | None]:
    return [score(one) for one in replies[0]] if replies else []


def notes_page(
    keys: QueueKeys, which: Notes, cursor: int = 0, *, count: int
) -> CommandCall[NotesPage]:
    """About `count` of the notes: those that are there from the first page to the last one are
    found, some perhaps twice."""
    command = ("HSCAN", getattr(keys, which), cursor, "COUNT", count)
    return CommandCall(keys.meta, [command], _read_page)


def notes_of(keys: QueueKeys, which: Notes, ids: Sequence[str]) -> CommandCall[list[bytes | None]]:
    """The notes of these jobs; None where there is none."""
    command = ("HMGET", getattr(keys, which), *ids)
    return CommandCall(keys.meta, [command] if ids else [], _read_each)


def began_of(keys: QueueKeys, consumer: str, ids: Sequence[str]) -> CommandCall[list[int]]:
    """When these jobs of a consumer began to run, ms; 0 = not known (yet)."""
    command = ("HMGET", keys.running(consumer), *ids)
    return CommandCall(keys.meta, [command] if ids else [], _read_began)


def job_sizes(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[int]]:
    """Bytes of these jobs, header and envelope; 0 where there is no such job."""
    return CommandCall(keys.meta, [("HSTRLEN", keys.jobs, id) for id in ids], _read_sizes)


def deaths(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[float | None]]:
    """When these jobs became dead letters, ms; None for those that are none."""
    return CommandCall(keys.meta, [("ZMSCORE", keys.dead, *ids)] if ids else [], _read_scores)


def expiries(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[float | None]]:
    """When these jobs are noted to expire, ms; None for those that are not."""
    return CommandCall(keys.meta, [("ZMSCORE", keys.expiring, *ids)] if ids else [], _read_scores)


def expiry_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[ExpiryPage]:
    """About `count` of the jobs that are noted to expire: as `notes_page`."""
    return CommandCall(
        keys.meta, [("ZSCAN", keys.expiring, cursor, "COUNT", count)], _read_expiries
    )
