"""Whether the bytes of jobs that a limit counts are noted as they are, and their sum."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.job_checks import TURN
from rqueue.inspector.doctor.members import id_in
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol import commands
from rqueue.protocol.commands.job_notes import job_sizes
from rqueue.protocol.commands.size_notes import size_count, size_page, size_sum, sizes_noted
from rqueue.protocol.replies import raw_text

SUSPECTS_MAX = 1000
"""Jobs that one checkup looks at closely."""

SUM_MOST = 100_000
"""Notes that are added up at one moment; of more each page is read at a moment of its own."""

PAGE = 1000
BLURRED = 4
"""A sum that is read page by page is wrong where it differs by so many times the bytes by which the
queue was seen to change meanwhile. Where the queue stands still it is exact."""


def suspect_sizes(walk: Walk) -> list[str]:
    """Ids of jobs whose note may be missing, wrong, or of a job that does not count."""
    if not _weighed(walk):
        return []
    return list(islice(_suspects(walk), SUSPECTS_MAX))


def _weighed(walk: Walk) -> str:
    """The policy that counts bytes, once it has a limit; else ""."""
    stamp, weighed = walk.meta("v", "weighed")
    policies = (stamp or b"").decode(errors="replace").split()
    found = [name for name in ("max_bytes", "ring_bytes") if name in policies]
    return found[0] if found and weighed == b"1" else ""


def _suspects(walk: Walk) -> Iterator[str]:
    waiting: set[str] = set()
    lists = [f"{kind}:{level}" for level in sorted(walk.levels) for kind in ("due", "ready")]
    sets = walk.group_places()
    if _weighed(walk) == "max_bytes":
        sets.append("scheduled")
        if walk.meta("count_held") == [b"1"]:
            lists += [f"held:{name}" for name in sorted(walk.registered)]
    for place in [*lists, *sets]:
        id_at = id_in if place in sets else bytes
        for page in walk.pages(place):
            there = {
                raw_text(id_at(its.member)): str(its.bytes - len(its.head) - 1)
                for its in page
                if its.head and not its.marked
            }
            waiting.update(there)
            noted = walk.execute(sizes_noted(walk.keys, list(there)))
            yield from (id_ for id_, its in zip(there, noted, strict=True) if its != there[id_])
    cursor = 0
    while True:
        noted_page = walk.execute(size_page(walk.keys, cursor, count=PAGE))
        yield from (id_ for id_ in noted_page.sizes if id_ not in waiting)
        if not (cursor := noted_page.cursor):
            return


def diagnose_size(walk: Walk, id: str) -> list[Finding]:
    """Whether what is noted of one job's bytes is so."""
    policy = _weighed(walk)
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    noted, size = (
        walk.execute(sizes_noted(walk.keys, [id])),
        walk.execute(job_sizes(walk.keys, [id])),
    )
    counts = bool(places.lists.keys() - {TURN})
    if policy == "max_bytes" and not places.dead:
        counts = counts or places.due is not None or (not places.holders)
        counts = counts or walk.meta("count_held") == [b"1"]
    alive = places.head[:1] == "h" and not places.dead
    meant = str(size[0] - len(places.head)) if alive and counts else ""
    if noted == [meant]:
        return []
    says = (
        f"job {id!r} has {meant} bytes, and {noted[0] or 'none'} are noted: the queue takes too"
        " much, or too little"
        if meant
        else f"job {id!r} counts with {noted[0]} bytes, and does not wait"
    )
    action = Action("leftovers", (id,), which="waiting")
    return [Finding("room", "size", walk.keys.queue, id, says, "note what is so", action=action)]


def diagnose_sum(walk: Walk, subject: str) -> list[Finding]:
    """Whether as many bytes are counted as the notes say."""
    if not _weighed(walk):
        return []
    if walk.meta("recount_at") != [None]:
        says = "the bytes that wait were being counted again, and nobody went on"
    else:
        counted, noted, changed = _added_up(walk)
        if abs(counted - noted) <= BLURRED * changed:
            return []
        says = f"{counted:,} bytes are counted to wait, and jobs have {noted:,}: the queue takes"
        says += " too much, or too little"
    action = Action("room")
    return [Finding("room", "bytes", walk.keys.queue, subject, says, "add them up", action=action)]


def _added_up(walk: Walk) -> tuple[int, int, int]:
    """How many bytes are counted, what the notes add up to, and by how much the queue was seen to
    change meanwhile."""
    if walk.execute(size_count(walk.keys)) <= SUM_MOST:
        return *walk.execute(size_sum(walk.keys)), 0
    page = walk.execute(size_page(walk.keys, 0, count=PAGE))
    counted, noted, changed = page.counted, 0, 0
    seen: set[str] = set()  # a page may repeat what another one had
    while True:
        noted += sum(
            int(its) for id_, its in page.sizes.items() if id_ not in seen and its.isdecimal()
        )
        seen.update(page.sizes)
        if not page.cursor:
            return counted, noted, changed
        page = walk.execute(size_page(walk.keys, page.cursor, count=PAGE))
        changed += abs(page.counted - counted)
        counted = page.counted
