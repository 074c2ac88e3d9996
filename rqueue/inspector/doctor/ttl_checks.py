"""Whether jobs that wait with a time to live are noted where it ends, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.job_checks import TURN
from rqueue.inspector.doctor.members import id_in
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import parse_header
from rqueue.protocol import commands
from rqueue.protocol.commands.job_notes import expiries, expiry_page
from rqueue.protocol.replies import raw_bytes, raw_text

SUSPECTS_MAX = 1000
"""Jobs that one checkup looks at closely."""


def suspect_expiring(walk: Walk) -> list[str]:
    """Ids of jobs whose note may be missing, wrong, or of a job that does not wait."""
    noted = walk.execute(expiry_page(walk.keys, count=1))
    if not noted.ends and not noted.cursor and "ttl" not in _stamp(walk):
        return []
    return list(islice(_suspects(walk), SUSPECTS_MAX))


def _stamp(walk: Walk) -> list[str]:
    return (walk.meta("v")[0] or b"").decode(errors="replace").split()


def _suspects(walk: Walk) -> Iterator[str]:
    waiting: set[str] = set()
    lists = [f"{kind}:{level}" for level in sorted(walk.levels) for kind in ("due", "ready")]
    groups = walk.group_places()
    for place in [*lists, *groups]:
        id_at = id_in if place in groups else bytes
        for page in walk.pages(place):
            timed = {raw_text(id_at(its.member)): _expires(its.head) for its in page}
            timed = {id_: at for id_, at in timed.items() if at}
            waiting.update(timed)
            for id_, noted in _noted(walk, list(timed)).items():
                if noted != timed[id_]:
                    yield id_
    cursor = 0
    while True:
        cursor, found = walk.execute(expiry_page(walk.keys, cursor, count=500))
        yield from (id_ for id_ in found if id_ not in waiting)
        if not cursor:
            return


def _expires(head: str) -> int:
    header = parse_header(raw_bytes(head))
    return header.expires_ms if header else 0


def _noted(walk: Walk, ids: list[str]) -> dict[str, float | None]:
    return dict(zip(ids, walk.execute(expiries(walk.keys, ids)), strict=True))


def diagnose_expiring(walk: Walk, id: str) -> list[Finding]:
    """Whether what is noted of one job's time to live is so."""
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    noted = _noted(walk, [id])[id]
    waits = places.lists.keys() - {TURN} and places.head[:1] == "h"
    meant = (_expires(places.head[1:]) if waits else 0) or None
    if noted == meant:
        return []
    says = (
        f"job {id!r} waits with a time to live, and is not noted where it ends: it expires only"
        " when a consumer meets it"
        if meant
        else f"job {id!r} is noted to expire, and does not wait: it would be ended where it is"
    )
    action = Action("leftovers", (id,), which="waiting")
    return [
        Finding("records", "expiring", walk.keys.queue, id, says, "note what is so", action=action)
    ]
