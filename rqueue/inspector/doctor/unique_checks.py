"""Problems of keys of unique jobs: whether each is that of a job, and each such job has its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import parse_header
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol import commands
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.key_notes import period_ends, unique_page
from rqueue.protocol.replies import raw_bytes

KEYS_MAX = 1000
"""Keys that one checkup looks at closely; a repair is followed by the next one."""


def suspect_unique(walk: Walk) -> list[tuple[str, str]]:
    """(key, id) of keys that no living job has which says so."""
    return list(islice(_suspects(walk), KEYS_MAX))


def _suspects(walk: Walk) -> Iterator[tuple[str, str]]:
    cursor = 0
    while True:
        cursor, found = walk.execute(unique_page(walk.keys, cursor, count=500))
        yield from (pair for pair in found.items() if diagnose_unique(walk, pair))
        if not cursor:
            return


def diagnose_unique(walk: Walk, subject: tuple[str, str]) -> list[Finding]:
    """Whether the job that has this key lives and says so, or has it for a period."""
    key, id_ = subject
    places = walk.execute(commands.check_job(walk.keys, id_, deep=False))
    head = places.head[1:] if places.head[:1] == "h" else ""
    header = parse_header(raw_bytes(head)) if head else None
    said = UniqueKey.parse(header.unique) if header else None
    if said and said.key == key and not places.dead:
        return []
    if header is None:
        (ends,) = walk.execute(period_ends(walk.keys, [key]))
        if ends and ends > walk.execute(read_clock(walk.keys)).now:
            return []
    says = f"the unique key {key} is that of job {id_!r}, which has it not: it keeps others away"
    action = Action("unique", (key,))
    return [Finding("keys", "unique", walk.keys.queue, key, says, "free it", action=action)]
