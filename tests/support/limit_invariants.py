"""What must always hold of a queue with limits, as functions over snapshots."""

from __future__ import annotations

from collections import Counter
from math import inf

from rqueue.model.job import EPOCH_MS
from rqueue.model.job_limit import JobLimit, of_all_keys
from tests.support.snapshot import Snapshot

KEYS = ("permits", "claims", "reopened", "limits", "declared", "rates", "tokens_due")


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "limits" in snapshot.meta.get("v", "").split()


def allowed(snapshot: Snapshot, limit: JobLimit) -> JobLimit:
    """The limit as it holds: what was set goes before what the newest of its jobs says."""
    said = snapshot.hash("limits")
    declared = snapshot.hash("declared").get(limit.field.encode(), b"").partition(b" ")[2]
    found = said.get(limit.field.encode(), said.get(of_all_keys(limit.field).encode(), declared))
    return limit.allowing(found.decode()) if found else limit


def of_limits(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        strays = {*KEYS} & snapshot.keys.keys()
        return [f"a queue without limits has {sorted(strays)}"] if strays else []
    return [*permits(snapshot), *places(snapshot), *offered(snapshot), *declared(snapshot)]


def declared(snapshot: Snapshot) -> list[str]:
    """Of each limit that is waited for, or has permits out, it is noted what it allows."""
    noted = {limit.decode() for limit in snapshot.hash("declared")}
    wanted = {limit for limit, _ in _waited_for(snapshot)}
    wanted |= {limit.decode() for limit in snapshot.hash("permits")}
    return [] if noted == wanted else [f"limits declared are {noted}, in use {wanted}"]


def permits(snapshot: Snapshot) -> list[str]:
    """The jobs that are ready or held, and only those, have permits, and these are all that are
    out. Of a rate those that are ready have tokens set aside, and those that are held have paid;
    so has what was released."""
    claims = {id.decode(): said.decode() for id, said in snapshot.hash("claims").items()}
    strands = [its for name, its in snapshot.behind.items() if "." in name]
    ready = [id for its in (snapshot.ready_heads, *strands) for id, *_ in its]
    here = [*ready, *(id for ids in snapshot.held.values() for id in ids)]
    wrong = []
    for id in here:
        if (head := snapshot.header(id)) is None:
            continue
        limits = [JobLimit.parse(text) for text in head.limits]
        want = [_claims(allowed(snapshot, one), head.attempts, id in ready) for one in limits]
        said = claims.get(id, "").split()
        if len(said) != len(want) or any(
            one not in may for one, may in zip(said, want, strict=True)
        ):
            wrong.append(f"job {id} of {head.limits} has {said}, not {want}")
    wrong += [f"{id} is neither ready nor held, and has permits" for id in claims if id not in here]
    counted: Counter[str] = Counter()
    for one in (one for said in claims.values() for one in said.split() if "!" not in one):
        limit, _, tokens = one.partition("*")
        counted[limit] += int(tokens or 1)
    out = {limit.decode(): int(number) for limit, number in snapshot.hash("permits").items()}
    return wrong if +counted == out else [*wrong, f"permits are {out}, of claims {dict(counted)}"]


def _claims(limit: JobLimit, attempts: int, ready: bool) -> list[str]:
    """What a job may have noted of this limit."""
    if not limit.per_ms:
        return [limit.field]
    paid = f"{limit.field}!{attempts}"
    return [f"{limit.field}*{limit.tokens}", paid] if ready else [paid]


def places(snapshot: Snapshot) -> list[str]:
    """Who waits for a limit stands in its set, by level and position, and names it."""
    wrong = []
    for limit, members in _waited_for(snapshot):
        for id, score, level, position in members:
            head = snapshot.header(id)
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
        head = snapshot.header(id)
        if head is not None and head.limits:
            wrong.append(f"job {id} of {head.limits} stands in a list")
    return wrong


def _waited_for(snapshot: Snapshot) -> list[tuple[str, list[tuple[str, float, int, int]]]]:
    """Limits and who waits for them, without the strands of shares."""
    return [(name, its) for name, its in snapshot.behind.items() if "." not in name]


def offered(snapshot: Snapshot) -> list[str]:
    """No permit is free that the first of those who wait could take, unless it is noted that it is
    still to be offered; of a rate it is noted when that finds its tokens."""
    wrong = []
    due = snapshot.scores("tokens_due")
    for limit, members in _waited_for(snapshot):
        if limit in snapshot.members("reopened"):
            continue
        head = snapshot.header(members[0][0])
        mine = [JobLimit.parse(text) for text in head.limits] if head else []
        for one in (one for one in mine if one.field == limit):
            wait = tokens_in(snapshot, one) if one.per_ms else _permit_in(snapshot, one)
            if wait is not None and not one.per_ms:
                wrong.append(f"{members[0][0]} waits for {limit}, which has a permit")
            if wait is not None and one.per_ms and not _soon(snapshot.now, wait, due.get(limit)):
                wrong.append(
                    f"{members[0][0]} waits {wait} ms for {limit}: {due} at {snapshot.now}"
                )
    wrong += [f"rate {one} has no job that waits" for one in due if one not in snapshot.behind]
    return wrong


def _soon(now: int, wait: float, due: float | None) -> bool:
    """Whether a consumer looks when the tokens are there, or before."""
    return due is not None and due <= now + wait + 1


def _permit_in(snapshot: Snapshot, limit: JobLimit) -> float | None:
    out = int(snapshot.hash("permits").get(limit.field.encode(), b"0"))
    return 0 if out < allowed(snapshot, limit).most else None


def tokens_in(snapshot: Snapshot, said: JobLimit) -> float | None:
    """ms until a job finds its tokens; None: no time brings them."""
    rate = allowed(snapshot, said)
    room = rate.burst - int(snapshot.hash("permits").get(rate.field.encode(), b"0")) - rate.tokens
    if not rate.most or room < 0:
        return None
    every = rate.per_ms / rate.most
    full = snapshot.scores("rates").get(rate.field, -inf) + EPOCH_MS
    ahead = min(max(0.0, full - snapshot.now), rate.burst * every)
    return max(0.0, ahead - room * every)
