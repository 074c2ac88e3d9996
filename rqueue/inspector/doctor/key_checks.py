"""Problems of keys: which job is the latest, and whether an older one waits too (Q-15)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.job_checks import key_in
from rqueue.inspector.doctor.members import id_in
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol import commands
from rqueue.protocol.commands.key_notes import latest_of, latest_page
from rqueue.protocol.replies import raw_text

KEYS_MAX = 1000
"""Jobs and keys that one checkup looks at closely; a repair is followed by the next one."""


def suspect_keys(walk: Walk) -> list[tuple[str, str]]:
    """(key, id) of ready jobs that are not the latest of their keys, and of keys whose latest is no
    living job of theirs."""
    return list(dict.fromkeys(islice(_suspects(walk), KEYS_MAX)))


def _suspects(walk: Walk) -> Iterator[tuple[str, str]]:
    for page in walk.pages("heads"):
        waiting = {raw_text(id_in(one.member)): key_in(one.head) for one in page}
        ids = [id_ for id_, key in waiting.items() if key]
        latest = walk.execute(latest_of(walk.keys, [waiting[id_] for id_ in ids]))
        yield from ((waiting[id_], id_) for id_, its in zip(ids, latest, strict=True) if its != id_)
    cursor = 0
    while True:
        cursor, found = walk.execute(latest_page(walk.keys, cursor, count=500))
        yield from ((key, id_) for key, id_ in found.items() if not _lives(walk, key, id_))
        if not cursor:
            return


def _lives(walk: Walk, key: str, id: str) -> bool:
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    return places.head[:1] == "h" and key_in(places.head[1:]) == key and not places.dead


def diagnose_key(walk: Walk, subject: tuple[str, str]) -> list[Finding]:
    """Whether this job is the latest of its key, if it waits, and lives, if it is the latest."""
    key, id_ = subject
    (latest,) = walk.execute(latest_of(walk.keys, [key]))
    places = walk.execute(commands.check_job(walk.keys, id_, deep=False))
    queue = walk.keys.queue
    if latest == id_:
        if _lives(walk, key, id_):
            return []
        says = f"the latest job of key {key} is {id_!r}, which is gone: its note stays for ever"
        action = Action("group", which=key)
        return [Finding("keys", "latest", queue, id_, says, "forget it", action=action)]
    if "heads" not in places.lists or key_in(places.head[1:]) != key:
        return []
    says = f"job {id_!r} of key {key} waits, and " + (
        f"the latest of the key is {latest!r}: an older value would be delivered"
        if latest
        else "is not noted as the latest of its key: a newer one would not displace it"
    )
    remedy = "end it as displaced" if latest else "note it"
    return [Finding("keys", "older", queue, id_, says, remedy, action=Action("job", (id_,)))]
