"""Notes that the queue keeps of its jobs beside them: counters, causes, errors, records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rqueue.errors import Undecodable
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.envelope import parse_record
from rqueue.model.history_batch import read_entry
from rqueue.protocol import commands
from rqueue.protocol.commands.history import history_page
from rqueue.protocol.commands.job_notes import Notes, deaths, job_sizes, notes_page
from rqueue.protocol.commands.queue_keys import guard_exists

MARK_SIGNS = ("marked", "cancelled", "acked", "released")
"""Fields of meta that change when cancelled elements come and go: the count first."""

HISTORY_PAGE = 100
"""Entries of the history that one command reads."""

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
    if not walk.execute(guard_exists(walk.keys)):
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


def diagnose_leftovers(walk: Walk, which: Notes) -> list[Finding]:
    """Notes of jobs that are not there. which: causes, errors, awaited, parked, byte_waiters."""
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


def _leftovers(walk: Walk, which: Notes) -> Iterator[str]:
    cursor = 0
    while True:
        cursor, notes = walk.execute(notes_page(walk.keys, which, cursor, count=100))
        yield from _untrue(walk, which, list(notes))
        if not cursor:
            return


def _untrue(walk: Walk, which: Notes, ids: Sequence[str]) -> Iterator[str]:
    """Those of these jobs that are not what the note of them says."""
    if which == "causes":
        died = walk.execute(deaths(walk.keys, ids))
        yield from (id_ for id_, at in zip(ids, died, strict=True) if at is None)
        return
    for id_, size in zip(ids, walk.execute(job_sizes(walk.keys, ids)), strict=True):
        if not size or (
            which == "parked" and walk.execute(commands.check_job(walk.keys, id_)).due is None
        ):
            yield id_


def diagnose_history(walk: Walk) -> Iterator[Finding]:
    """Whether all entries of the history can be read."""
    damaged: list[str] = []
    since = "-"
    while entries := walk.execute(history_page(walk.keys, since, count=HISTORY_PAGE)):
        for entry in entries:
            try:
                read_entry(entry.fields, walk.keys.queue)
            except Undecodable:
                damaged.append(entry.id)
        since = f"({entries[-1].id}"
    if damaged:
        shown = ", ".join(damaged[:3]) + (", ..." if len(damaged) > 3 else "")
        says = (
            f"{len(damaged)} entries of the history cannot be read ({shown}): each is one row"
            f" 'damaged' until the history is trimmed, or until you delete it by XDEL"
            f" {walk.keys.history} ID"
        )
        yield Finding("records", "history", walk.keys.queue, "", says)


def sample_records(walk: Walk) -> Iterator[Finding]:
    """Whether records of ended jobs can be read."""
    broken = 0
    generations: tuple[Notes, ...] = ("ended", "ended_old")
    for generation in generations:
        page = walk.execute(notes_page(walk.keys, generation, count=RECORDS_SAMPLE))
        for raw in page.notes.values():
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
