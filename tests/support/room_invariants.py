"""What must always hold of a bounded queue, beside `tests.support.invariants`."""

from __future__ import annotations

from tests.support.snapshot import Snapshot


def room(snapshot: Snapshot, count: int) -> list[str]:
    """Room is kept for as many jobs as producers have grants for, each that waits has said for how
    many, and where the first one fits below the mark it has a grant."""
    wishes = {
        name.decode(): int(wish.split(b",")[0]) for name, wish in snapshot.hash("wishes").items()
    }
    grants, waiting = snapshot.scores("grants"), snapshot.scores("producers")
    granted = int(snapshot.meta.get("granted", "0"))
    wrong = []
    if grants.keys() & waiting.keys():
        wrong.append(f"producers wait and have grants: {grants.keys() & waiting.keys()}")
    if grants.keys() | waiting.keys() != wishes.keys():
        wrong.append(f"wishes are of {sorted(wishes)}, not of {sorted({*grants, *waiting})}")
        return wrong
    if granted != (kept := sum(wishes[name] for name in grants)):
        wrong.append(f"room for {granted} is counted, for {kept} it is kept")
    if not waiting or "bounded" not in snapshot.meta.get("v", "").split():
        return wrong
    limit = int(snapshot.meta.get("max_jobs", "0"))
    first = wishes[next(iter(waiting))]
    mark = limit * int(snapshot.meta.get("resume", "80")) // 100
    blocks = snapshot.meta.get("overflow") == "1"
    if not limit or not blocks or first > limit:
        wrong.append("producers wait where nothing is to be waited for")
    elif count <= mark and first <= limit - count - granted:
        wrong.append(f"{count} of {limit} jobs, {granted} granted, and one for {first} waits")
    return wrong
