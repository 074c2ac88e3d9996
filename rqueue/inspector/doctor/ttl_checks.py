"""Whether jobs that wait with a time to live are noted where it ends, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import cast

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import parse_header
from rqueue.protocol import commands
from rqueue.transport.redis_client import translated

SUSPECTS_MAX = 1000
"""Jobs that one checkup looks at closely."""


def suspect_expiring(walk: Walk) -> list[str]:
    """Ids of jobs whose note may be missing, wrong, or of a job that does not wait."""
    with translated(walk.client, queue=walk.keys.queue):
        if not walk.client.exists(walk.keys.expiring) and "ttl" not in _stamp(walk):
            return []
    return list(islice(_suspects(walk), SUSPECTS_MAX))


def _stamp(walk: Walk) -> list[str]:
    return (walk.meta("v")[0] or b"").decode(errors="replace").split()


def _suspects(walk: Walk) -> Iterator[str]:
    waiting: set[bytes] = set()
    for level in sorted(walk.levels):
        for kind in ("due", "ready"):
            for page in walk.pages(f"{kind}:{level}"):
                timed = {element.member: _expires(element.head) for element in page}
                timed = {member: at for member, at in timed.items() if at}
                waiting.update(timed)
                for member, noted in _noted(walk, list(timed)).items():
                    if noted != timed[member]:
                        yield _text(member)
    cursor = 0
    while True:
        with translated(walk.client, queue=walk.keys.queue):
            cursor, found = cast(
                "tuple[int, list[tuple[bytes, float]]]",
                walk.client.zscan(walk.keys.expiring, cursor, count=500),
            )
        yield from (_text(member) for member, _ in found if member not in waiting)
        if not cursor:
            return


def _text(member: bytes) -> str:
    return member.decode("utf-8", "surrogateescape")


def _expires(head: str) -> int:
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    return header.expires_ms if header else 0


def _noted(walk: Walk, members: list[bytes]) -> dict[bytes, float | None]:
    if not members:
        return {}
    with translated(walk.client, queue=walk.keys.queue):
        scores = cast(
            "list[float | None]",
            walk.client.execute_command("ZMSCORE", walk.keys.expiring, *members),
        )
    return {
        member: None if score is None else float(score)
        for member, score in zip(members, scores, strict=True)
    }


def diagnose_expiring(walk: Walk, id: str) -> list[Finding]:
    """Whether what is noted of one job's time to live is so."""
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    member = id.encode("utf-8", "surrogateescape")
    noted = _noted(walk, [member])[member]
    waits = places.lists and places.head[:1] == "h"
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
