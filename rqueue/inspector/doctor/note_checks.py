"""Notes that the queue keeps of its jobs beside them: counters, causes, errors, records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from rqueue.errors import Undecodable
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import parse_record
from rqueue.protocol import commands
from rqueue.transport.redis_client import translated

MARK_SIGNS = ("marked", "cancelled", "acked", "released")
"""Fields of meta that change when cancelled elements come and go: the count first."""

RECORDS_SAMPLE = 1000
"""Records of each generation that one checkup reads."""


def diagnose_meta(walk: Walk, subject: str) -> list[Finding]:
    """Whether meta knows the levels, the positions (as far as the walk has seen them), that there
    are jobs that were due (`promoted`), the version. subject: one of these."""
    action = Action("meta", levels=tuple(sorted(walk.levels)), highest=walk.highest)

    def finding(kind: str, says: str, remedy: str) -> list[Finding]:
        return [Finding("counters", kind, walk.keys.queue, subject, says, remedy, action=action)]

    if subject == "levels":
        missing = sorted(walk.levels - walk.meta_levels())
        if missing:
            levels = ", ".join(map(str, missing))
            return finding(
                "levels",
                f"jobs wait in level {levels}, which is not among the levels in use: no pull"
                " looks there",
                "note the level",
            )
    elif subject == "positions":
        seq = int(walk.meta("seq")[0] or 0)
        if walk.highest > seq:
            return finding(
                "positions",
                f"a job has position {walk.highest}, and the last one that was given is {seq}:"
                " the next jobs would stand before it",
                "go on behind it",
            )
    elif subject == "promoted":
        if walk.promoted and not walk.meta("promoted")[0]:
            return finding(
                "promoted",
                "jobs that were due wait, and the queue does not know that it ever had such: no"
                " pull looks there",
                "note it",
            )
    elif (version := walk.meta("v")[0]) is None and (walk.levels or walk.registered):
        return finding(
            "version",
            f"the queue does not say which version of rqueue wrote it ({version!r})",
            "write this one's",
        )
    return []


def diagnose_guard(walk: Walk, subject: str) -> list[Finding]:
    """Whether the key that every script declares and none may use is there: subject."""
    with translated(walk.client, queue=walk.keys.queue):
        if not walk.client.exists(walk.keys.guard):
            return []
    return [
        Finding(
            "server",
            "guard",
            walk.keys.queue,
            subject,
            f"the key '{walk.keys.guard}' is there and must not be: without it a cluster that moves"
            f" this queue stops each script before it begins, with it half way. Delete it: no part"
            " of rqueue made it",
        )
    ]


def diagnose_marked(walk: Walk, subject: str) -> list[Finding]:
    """The counter of cancelled elements, compared with those there are; a count that was
    disturbed says nothing."""
    before = walk.meta(*MARK_SIGNS)
    marks = 0
    for level in sorted(walk.levels):
        for kind in ("due", "ready"):
            seen: set[bytes] = set()
            for page in walk.pages(f"{kind}:{level}"):
                marks += sum(e.marked for e in page if e.member not in seen)
                seen = {e.member for e in page}
    counted = int(before[0] or 0)
    if marks == counted or before != walk.meta(*MARK_SIGNS):
        return []
    return [
        Finding(
            "counters",
            "marked",
            walk.keys.queue,
            subject,
            f"{marks} cancelled elements are in the lists, and {counted} are counted: the"
            f" number of ready jobs is wrong by {abs(marks - counted)}",
            "count them",
            action=Action("meta", marked=(counted, marks)),
        )
    ]


def diagnose_leftovers(walk: Walk, which: str) -> list[Finding]:
    """Notes of jobs that are not there. which: causes, errors, awaited, parked, short."""
    ids = list(islice(_leftovers(walk, which), 250))
    if not ids:
        return []
    what = {
        "causes": "causes of dead letters that are not there: they take room",
        "errors": "errors of jobs that are not there: they take room",
        "awaited": "notes that a client waits for a job that is not there: they take room",
        "parked": "notes that a job is parked which is not scheduled: the numbers are wrong",
        "byte_waiters": "consumers wait for a job that is not there to go: they are never notified",
    }[which]
    shown = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
    return [
        Finding(
            "records",
            which,
            walk.keys.queue,
            which,
            f"{len(ids)}{' or more' if len(ids) == 250 else ''} {what} ({shown})",
            "notify them" if which == "byte_waiters" else "drop them",
            "problem" if which in ("byte_waiters", "causes") else "note",
            Action("leftovers", tuple(ids), which=which),
        )
    ]


def _leftovers(walk: Walk, which: str) -> Iterator[str]:
    key = getattr(walk.keys, which)
    cursor = 0
    with translated(walk.client, queue=walk.keys.queue):
        while True:
            cursor, found = cast(
                "tuple[int, dict[bytes, bytes]]", walk.client.hscan(key, cursor, count=100)
            )
            for id_ in found:
                name = id_.decode("utf-8", "surrogateescape")
                if not _is_true(walk, which, name):
                    yield name
            if not cursor:
                return


def _is_true(walk: Walk, which: str, id: str) -> bool:
    if which == "causes":
        raw = id.encode("utf-8", "surrogateescape")
        return walk.client.zscore(walk.keys.dead, raw) is not None
    raw_id: Any = id.encode("utf-8", "surrogateescape")
    value_size = walk.client.hstrlen(walk.keys.jobs, raw_id)
    if not value_size:
        return False
    if which == "parked":
        return walk.execute(commands.check_job(walk.keys, id)).due is not None
    return True


def sample_records(walk: Walk) -> Iterator[Finding]:
    """Whether records of ended jobs can be read."""
    broken = 0
    with translated(walk.client, queue=walk.keys.queue):
        for key in (walk.keys.ended, walk.keys.ended_old):
            _, found = cast(
                "tuple[int, dict[bytes, bytes]]",
                walk.client.hscan(key, 0, count=RECORDS_SAMPLE),
            )
            for raw in found.values():
                try:
                    parse_record(raw)
                except Undecodable:
                    broken += 1
    if broken:
        says = (
            f"{broken} of some {RECORDS_SAMPLE} records that were looked at cannot be read:"
            " who asks for these results gets an error until they are forgotten"
        )
        yield Finding("records", "unreadable", walk.keys.queue, "", says)
