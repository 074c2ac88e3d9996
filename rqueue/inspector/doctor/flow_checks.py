"""Problems of jobs that wait for others: whether there is still something to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import is_mark, parse_header
from rqueue.model.parents import Parents
from rqueue.protocol.commands.flow_notes import gathered_of, jobs_of
from rqueue.protocol.commands.job_notes import deaths, notes_page

SUSPECTS_MAX = 1000
"""Deferred jobs that one checkup looks at closely."""

PARENTS_MAX = 1000
"""Parents of one of them that are looked at: where there are more, some may not be enqueued yet."""


def suspect_deferred(walk: Walk) -> list[str]:
    """Ids of the jobs that wait for others."""
    return list(islice(_deferred(walk), SUSPECTS_MAX))


def _deferred(walk: Walk) -> Iterator[str]:
    cursor = 0
    while True:
        page = walk.execute(notes_page(walk.keys, "deferred", cursor, count=500))
        yield from page.notes
        cursor = page.cursor
        if not cursor:
            return


def diagnose_deferred(walk: Walk, id: str) -> list[Finding]:
    """Whether a job that waits has parents that are there, and have not ended, or are counted."""
    value, total, gathered = walk.execute(gathered_of(walk.keys, id))
    header = parse_header((value or b"").partition(b";")[0])
    parents = Parents.parse(header.waits) if header else None
    if total is None:
        return []

    def finding(kind: str, says: str, remedy: str, action: Action | None) -> list[Finding]:
        where = walk.keys.queue
        return [Finding("workflows", kind, where, id, says, remedy, action=action)]

    if parents is None or parents.total != total:
        return finding(
            "no-parents",
            f"job {id!r} is noted to wait for {total} others, and does not say so itself: it never"
            " runs",
            "put it to its place",
            Action("job", (id,)),
        )
    open_ = [place for place in range(min(total, PARENTS_MAX)) if place not in gathered]
    if total > PARENTS_MAX and open_:
        return []
    names = parents.of(id)
    values = walk.execute(jobs_of(walk.keys, [names[place] for place in open_]))
    died = walk.execute(deaths(walk.keys, [names[place] for place in open_]))
    waited = parents.on_failure == "wait"
    gone = [
        names[place]
        for place, value, death in zip(open_, values, died, strict=True)
        if value is None or is_mark(value) or (death is not None and not waited)
    ]
    if open_ and not gone:
        return []
    said = f"{gone[0]!r} is not there" if gone else f"all {total} have ended"
    return finding(
        "parents",
        f"job {id!r} waits for {total} others, and {said}: it never runs by itself. Enqueue the"
        " workflow again under its id, which goes on with it, or cancel the job (rqueue cancel)",
        "",
        None,
    )
