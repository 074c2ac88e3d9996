"""Problems of jobs that wait for others: whether there is still something to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from orjson import dumps

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.envelope import parse_record
from rqueue.model.job import is_mark, parse_header
from rqueue.model.parents import Parents
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.flow_notes import deadline_of, gathered_of, jobs_of, places_of
from rqueue.protocol.commands.job_notes import deaths, notes_page
from rqueue.protocol.commands.outgoing import outbox
from rqueue.protocol.commands.read import show
from rqueue.protocol.keys import QueueKeys
from rqueue.text.numbers import many

SUSPECTS_MAX = 1000
"""Deferred jobs that one checkup looks at closely."""

PARENTS_MAX = 1000
"""Parents of one of them that one look, or one repair, takes."""

STORED_MS = 60_000
"""Where there are more, some may not be enqueued yet: for how long nothing is said of that."""


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
    where = walk.keys.queue
    if header is not None and parents is not None and parents.open:
        return _diagnose_open(walk, id, parents._replace(total=total))
    if header is None or parents is None or parents.total != total:
        says = (
            f"job {id!r} is noted to wait for {total} others, and does not say so itself: it never"
            " runs"
        )
        action = Action("job", (id,))
        remedy = "put it to its place"
        return [Finding("workflows", "no-parents", where, id, says, remedy, action=action)]
    if gathered < total:
        now = walk.execute(read_clock(walk.keys)).now
        if total > PARENTS_MAX and now - header.enqueued_ms < STORED_MS:
            return []
        place, gone = _first_gone(walk, parents, id)
        if not gone:
            return []
        said = f"{gone!r} is not there, or has ended"
    else:
        place, said = 0, f"all {total} have ended"
    says = (
        f"job {id!r} waits for {many(total, 'other')}, and {said}: it never runs by itself. Its"
        " workflow, enqueued again under its id, goes on"
    )
    remedy = (
        "let it hear of the end or the loss of each, and run or be cancelled as on_failure says"
    )
    action = Action("parents", (id,), place=place)
    return [Finding("workflows", "parents", where, id, says, remedy, action=action)]


def _diagnose_open(walk: Walk, id: str, parents: Parents) -> list[Finding]:
    """Whether a job that waits for a stream which goes on has the parents that came, and ends
    where its producer is lost. parents: with the number of those that came."""
    where, place, gone = walk.keys.queue, *_first_gone(walk, parents, id)
    if gone:
        says = f"job {id!r} waits for a stream, of which {gone!r} is not there, or has ended"
        remedy = "let it hear of the end or the loss of each"
    elif walk.execute(deadline_of(walk.keys, id)) is None:
        says = (
            f"job {id!r} waits for a stream, and it is not noted until when: it never ends where"
            " its producer is lost"
        )
        remedy = "note it"
    else:
        return []
    action = Action("parents", (id,), place=place)
    return [Finding("workflows", "parents", where, id, says, remedy, action=action)]


def _first_gone(walk: Walk, parents: Parents, id: str) -> tuple[int, str]:
    """Where the places are that hold the first parent of which this job should have heard, and who
    that is; "" where there is none."""
    if _on_their_way(walk, parents):
        return 0, ""
    for first in range(0, parents.total, PARENTS_MAX):
        if gone := _gone(walk, parents, id, first):
            return first, gone[0][1]
    return 0, ""


def _on_their_way(walk: Walk, parents: Parents) -> bool:
    """Whether words of ends may be on their way from one of the queues of these parents."""
    its = (QueueKeys(queue, walk.keys.namespace) for queue in parents.queues)
    return any(walk.execute(outbox(keys)).jobs for keys in its)


def _gone(walk: Walk, parents: Parents, id: str, first: int) -> list[tuple[int, str]]:
    """Place and id of the parents, from the place `first` on, of which this job should have
    heard."""
    waited = parents.on_failure == "wait"
    places = range(first, min(parents.total, first + PARENTS_MAX))
    names = [parents.ids[place] if parents.ids else f"{id}.{place}" for place in places]
    known = walk.execute(places_of(walk.keys, id, places))
    open_ = [
        one for one, heard in zip(zip(places, names, strict=True), known, strict=True) if not heard
    ]
    for queue in parents.queues or (walk.keys.queue,):
        keys = QueueKeys(queue, walk.keys.namespace)
        asked = [name for _, name in open_]
        values, died = walk.execute(jobs_of(keys, asked)), walk.execute(deaths(keys, asked))
        open_ = [
            one
            for one, value, death in zip(open_, values, died, strict=True)
            if value is None or is_mark(value) or (death is not None and not waited)
        ]
    return open_


def ends_elsewhere(walk: Walk, id: str, first: int) -> bytes:
    """What a job is to hear of its parents in other queues of whose ends it has not heard, from
    the place `first` on, as `join` says it: what their records say, or that they are lost. b"":
    nothing."""
    header = parse_header(
        (walk.execute(gathered_of(walk.keys, id)).value or b"").partition(b";")[0]
    )
    parents = Parents.parse(header.waits) if header else None
    if parents is None or not parents.queues:
        return b""
    said: list[str] = []
    for place, name in _gone(walk, parents, id, first):
        end = [str(place), name, "lost", "", ""]
        for queue in parents.queues:
            look = walk.execute(show(QueueKeys(queue, walk.keys.namespace), name))
            if look.state == "ended" and look.record:
                record = parse_record(look.record)
                left = record.payload.decode("utf-8", "surrogateescape")
                end = [str(place), name, str(record.state), "", left]
        said += end
    return dumps(said) if said else b""
