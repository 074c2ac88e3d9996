"""What must always hold of the keys of unique jobs."""

from __future__ import annotations

from collections.abc import Mapping

from rqueue.errors import Undecodable
from rqueue.model.job import is_mark, parse_value
from rqueue.model.unique_key import UniqueKey
from tests.support.snapshot import Snapshot


def of_job(snapshot: Snapshot, id: str) -> UniqueKey | None:
    """The unique key that a live job has by its header."""
    value = snapshot.jobs.get(id, b"!")
    if is_mark(value):
        return None
    try:
        return UniqueKey.parse(parse_value(value)[0].unique)
    except Undecodable:
        return None


def keys(snapshot: Snapshot, where: Mapping[str, str]) -> list[str]:
    """A unique key is that of a job which lives and has it, or, for a period, of one that is done.
    where: id -> place."""
    wrong = []
    periods = snapshot.scores("periods")
    for key, id in ((key.decode(), id.decode()) for key, id in snapshot.hash("unique").items()):
        said, place = of_job(snapshot, id), where.get(id, "nowhere")
        if said is None and id not in snapshot.jobs and key in periods:
            continue
        if said is None or said.key != key:
            wrong.append(f"the unique key {key} is that of {id}, which has {said}")
        elif place == "dead" or (said.until == "start" and place.startswith("held:")):
            wrong.append(f"the unique key {key} is that of {id}, which is in {place}")
    return wrong
