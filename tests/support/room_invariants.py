"""What must always hold of a bounded queue, beside `tests.support.invariants`."""

from __future__ import annotations

from collections.abc import Iterable

from rqueue.model.job import is_mark
from tests.support.snapshot import Snapshot


def weighed(snapshot: Snapshot) -> str:
    """The policy that counts the queue's bytes, or ""."""
    policies = snapshot.meta.get("v", "").split()
    return next((name for name in ("max_bytes", "ring_bytes") if name in policies), "")


def bytes_by_job(snapshot: Snapshot, places: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The jobs that a limit in bytes counts, each looked for in its place, and their bytes."""
    policy, held = weighed(snapshot), snapshot.meta.get("count_held") == "1"
    found = {}
    for id, place in places:
        value = snapshot.jobs.get(id, b"")
        away = place.startswith("held:") and not (held and policy == "max_bytes")
        if place == "dead" or away or (policy == "ring_bytes" and place == "scheduled"):
            continue
        if value and not is_mark(value):
            found[id] = len(value) - value.index(b";") - 1
    return found


def sizes(snapshot: Snapshot, places: Iterable[tuple[str, str]]) -> list[str]:
    """What is noted of the bytes of jobs is so, and its sum is kept."""
    if not weighed(snapshot) or snapshot.meta.get("weighed") != "1":
        return []
    wrong = []
    noted = {id.decode(): int(size) for id, size in snapshot.hash("sizes").items()}
    if noted != (so := bytes_by_job(snapshot, places)):
        wrong.append(f"sizes are {noted}, not {so}")
    if (said := int(snapshot.meta.get("waiting_bytes", "0"))) != sum(so.values()):
        wrong.append(f"{said} bytes are counted, not {sum(so.values())}")
    anew = snapshot.meta.get("recounted")
    again = {id: size for id, size in snapshot.hash("sizes").items() if size[:1] == b"0" < size}
    if anew is not None and int(anew) != (sum_ := sum(map(int, again.values()))):
        wrong.append(f"{anew} bytes are counted anew, not {sum_}")
    if again and "recount_at" not in snapshot.meta:
        wrong.append(f"nobody counts anew, and these have been: {sorted(again)}")
    return wrong


NO_LIMIT = 10**18


def room(snapshot: Snapshot, count: int) -> list[str]:
    """Room is kept for as many jobs as producers have grants for, each that waits has said for how
    many, and where the first one fits below the mark it has a grant."""
    wishes = {
        name.decode(): int(wish.split(b",")[0]) for name, wish in snapshot.hash("wishes").items()
    }
    grants, waiting = snapshot.scores("grants"), snapshot.scores("producers")
    granted = int(snapshot.meta.get("granted", "0"))
    granted_bytes = int(snapshot.meta.get("granted_bytes", "0"))
    bytes_of = {
        name.decode(): int(wish.split(b",")[2]) for name, wish in snapshot.hash("wishes").items()
    }
    wrong = []
    if grants.keys() & waiting.keys():
        wrong.append(f"producers wait and have grants: {grants.keys() & waiting.keys()}")
    if grants.keys() | waiting.keys() != wishes.keys():
        wrong.append(f"wishes are of {sorted(wishes)}, not of {sorted({*grants, *waiting})}")
        return wrong
    if granted != (kept := sum(wishes[name] for name in grants)):
        wrong.append(f"room for {granted} is counted, for {kept} it is kept")
    if granted_bytes != (kept := sum(bytes_of[name] for name in grants)):
        wrong.append(f"room for {granted_bytes} bytes is counted, for {kept} it is kept")
    if not waiting or "bounded" not in snapshot.meta.get("v", "").split():
        return wrong
    limit = int(snapshot.meta.get("max_jobs", "0")) or NO_LIMIT
    limit_bytes = int(snapshot.meta.get("max_bytes", "0")) or NO_LIMIT
    name = next(iter(waiting))
    first, size = wishes[name], bytes_of[name]
    resume, there = int(snapshot.meta.get("resume", "80")), 0
    if limit_bytes < NO_LIMIT:
        there = int(snapshot.meta.get("waiting_bytes", "0"))
    blocks = snapshot.meta.get("overflow") == "1"
    bound = min(limit, limit_bytes) < NO_LIMIT
    below = count <= limit * resume // 100 and there <= limit_bytes * resume // 100
    fits = first <= limit - count - granted and size <= limit_bytes - there - granted_bytes
    if not bound or not blocks or first > limit or size > limit_bytes:
        wrong.append("producers wait where nothing is to be waited for")
    elif below and fits:
        wrong.append(
            f"{count} of {limit} jobs, {granted} granted, {there} of {limit_bytes} bytes,"
            f" {granted_bytes} granted, and one for {first} ({size} bytes) waits"
        )
    return wrong
