"""What must always hold of a queue with limits, as functions over snapshots."""

from __future__ import annotations

from collections import Counter

from rqueue.errors import Undecodable
from rqueue.model.job import Header, is_mark, parse_value
from rqueue.model.job_limit import JobLimit
from tests.support.snapshot import Snapshot


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "limits" in snapshot.meta.get("v", "").split()


def _header(snapshot: Snapshot, id: str) -> Header | None:
    value = snapshot.jobs.get(id, b"!")
    if is_mark(value):
        return None
    try:
        return parse_value(value)[0]
    except Undecodable:
        return None


def allowed(snapshot: Snapshot, limit: JobLimit) -> int:
    """How many jobs this limit allows."""
    said = snapshot.hash("limits")
    name = limit.field.partition("=")[0]
    found = said.get(limit.field.encode(), said.get(name.encode()))
    return limit.most if found is None else int(found)


def of_limits(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        strays = {"permits", "claims", "reopened", "limits"} & snapshot.keys.keys()
        return [f"a queue without limits has {sorted(strays)}"] if strays else []
    return [*permits(snapshot), *places(snapshot), *offered(snapshot)]


def permits(snapshot: Snapshot) -> list[str]:
    """The jobs that are ready or held, and only those, have permits, and these are all that are
    out."""
    claims = {id.decode(): said.decode() for id, said in snapshot.hash("claims").items()}
    here = [id for id, *_ in snapshot.ready_heads]
    here += [id for ids in snapshot.held.values() for id in ids]
    wrong = []
    for id in here:
        head = _header(snapshot, id)
        said = " ".join(JobLimit.parse(text).field for text in head.limits) if head else None
        if said is not None and said != claims.get(id, ""):
            wrong.append(f"job {id} of {said!r} has permits of {claims.get(id)!r}")
    wrong += [f"{id} is neither ready nor held, and has permits" for id in claims if id not in here]
    counted = Counter(limit for said in claims.values() for limit in said.split())
    out = {limit.decode(): int(number) for limit, number in snapshot.hash("permits").items()}
    return wrong if counted == out else [*wrong, f"permits are {out}, of claims {dict(counted)}"]


def places(snapshot: Snapshot) -> list[str]:
    """Who waits for a limit stands in its set, by level and position, and names it."""
    wrong = []
    for limit, members in snapshot.behind.items():
        for id, score, level, position in members:
            head = _header(snapshot, id)
            if head is None:
                continue
            said = (9 - head.level) * 10**14 + 5 * 10**13 + head.position
            if (level, position, score) != (head.level, head.position, said) or head.due_ms:
                wrong.append(f"job {id} at {head} waits for {limit} as {(score, level, position)}")
            if limit not in [JobLimit.parse(text).field for text in head.limits]:
                wrong.append(f"job {id} at {head} waits for {limit}")
    behind = sum(map(len, snapshot.behind.values()))
    if behind != int(snapshot.meta.get("blocked", "0")):
        wrong.append(f"{behind} jobs are blocked, counted are {snapshot.meta.get('blocked')}")
    if (found := sorted(snapshot.behind)) != (known := sorted(snapshot.scores("blocked"))):
        wrong.append(f"limits that are waited for: {found}, known are {known}")
    for id, *_ in (one for ids in snapshot.lists.values() for one in [(id,) for id in ids]):
        head = _header(snapshot, id)
        if head is not None and head.limits:
            wrong.append(f"job {id} of {head.limits} stands in a list")
    return wrong


def offered(snapshot: Snapshot) -> list[str]:
    """No permit is free that the first of those who wait could take, unless it is noted that it is
    still to be offered."""
    out = {limit.decode(): int(number) for limit, number in snapshot.hash("permits").items()}
    wrong = []
    for limit, members in snapshot.behind.items():
        if limit in snapshot.members("reopened"):
            continue
        head = _header(snapshot, members[0][0])
        if head is None:
            continue
        mine = [one for text in head.limits if (one := JobLimit.parse(text)).field == limit]
        if mine and out.get(limit, 0) < allowed(snapshot, mine[0]):
            wrong.append(f"{members[0][0]} waits for {limit}, of which {out.get(limit, 0)} are out")
    return wrong
