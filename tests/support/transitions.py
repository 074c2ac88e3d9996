"""What one step may change in a queue, as functions over the snapshots before and after it.

Each returns what is wrong, in words; nothing wrong is an empty list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tests.support import class_invariants, invariants, refusal_invariants, sticky_invariants
from tests.support.snapshot import Snapshot


def newly_held(before: Snapshot, after: Snapshot) -> dict[str, list[str]]:
    """consumer -> ids that it acquired in this step, in order."""
    found = {}
    for name, ids in after.held.items():
        mine = before.held.get(name, [])
        fresh = [id for id in ids if id not in mine]
        if fresh:
            found[name] = fresh
    return found


def credit_kept(before: Snapshot, after: Snapshot) -> list[str]:
    """6: a consumer that took a job holds no more than it granted; one job alone always fits."""
    wrong = []
    for name in newly_held(before, after):
        row, held = after.consumers[name], after.held[name]
        if len(held) > int(row["jobs"]):
            wrong.append(f"{name} granted {row['jobs']} jobs and holds {len(held)}")
        size = sum(len(after.jobs[id]) for id in held)
        if 0 < int(row["bytes"]) < size and len(held) > 1:
            wrong.append(f"{name} granted {row['bytes']} bytes and holds {size}")
    return wrong


def oldest_taken(before: Snapshot, after: Snapshot) -> list[str]:
    """2: what was acquired is the oldest of the highest level, taken in order."""
    wrong = []
    for name, ids in newly_held(before, after).items():
        left = class_invariants.takes(after, name, invariants.waiting(after))
        left = refusal_invariants.takes(after, name, left)
        left = sticky_invariants.takes(after, name, left)
        best = invariants.rank(after, left[0]) if left else None
        ranks = [invariants.rank(after, id) for id in ids]
        if ranks != sorted(ranks):
            wrong.append(f"{name} took {ids} out of order")
        if best is not None and ranks[-1] > best:
            wrong.append(f"{name} took {ids[-1]} while the older {left[0]} waits")
    if after.meta.get("paused") == "1" and newly_held(before, after):
        wrong.append(f"handed out while paused: {newly_held(before, after)}")
    return wrong


def no_herd(before: Snapshot, after: Snapshot, arrivals: int) -> list[str]:
    """5: no more consumers were woken than jobs arrived; one more where another one takes over the
    fleet's timer, which is no wake-up for the job."""
    wakes = _wake_ups(after)
    wakes.subtract(_wake_ups(before))
    woken = sum(
        count
        for name, count in wakes.items()
        if count > 0 and after.consumers[name]["mode"] != "browse"
    )
    timer = 1 if before.scheduled or after.scheduled else 0
    if woken > arrivals + timer:
        return [f"{woken} wake-ups for {arrivals} arrivals: {dict(wakes)}"]
    return []


def _wake_ups(snapshot: Snapshot) -> Counter[str]:
    """consumer -> how many unread wake-ups it has, a job delivered directly being one."""
    return Counter(
        name for name, words in snapshot.wakes.items() for word in words if word[:1] in b"wJ"
    )


def accepted_once(before: Snapshot, accepted: Collection[str]) -> list[str]:
    """8: an id that was accepted once is not accepted again while its record lasts."""
    return [
        f"{id} was accepted again" for id in accepted if id in before.jobs or id in before.records
    ]
