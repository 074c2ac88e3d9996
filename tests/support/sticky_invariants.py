"""What must always hold of a queue with sticky groups, as functions over snapshots."""

from __future__ import annotations

from rqueue.protocol.policies.sticky import BUCKETS, bucket_of
from tests.support.snapshot import Snapshot


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "sticky" in snapshot.meta.get("v", "").split()


def owners(snapshot: Snapshot) -> dict[str, str]:
    """bucket -> its consumer."""
    return {bucket.decode(): name.decode() for bucket, name in snapshot.hash("owners").items()}


def takes(snapshot: Snapshot, consumer: str, ids: list[str]) -> list[str]:
    """Those of these ready jobs that a consumer takes in any case."""
    if not used(snapshot):
        return ids
    own = {id for id, *_ in snapshot.own.get(consumer, ())}
    return [id for id in ids if id in own]


def of_owners(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        kept = [key for key in snapshot.keys if key == "owners" or key.startswith("own:")]
        return [f"a queue without sticky groups has {kept}"] if kept else []
    return [*places(snapshot), *liveness(snapshot)]


def places(snapshot: Snapshot) -> list[str]:
    """Owners are registered; a ready job of a bucket stands with its owner, or is anybody's where
    there is none; a bucket is that of its group."""
    wrong = []
    whose = owners(snapshot)
    buckets = int(snapshot.meta.get("sticky", BUCKETS))
    for bucket, name in whose.items():
        if name not in snapshot.consumers:
            wrong.append(f"bucket {bucket} is {name}'s, which is not registered")
    for id in snapshot.jobs:
        head = snapshot.header(id)
        right = str(bucket_of(head.group, buckets)) if head and head.group else ""
        if head and head.bucket != right:
            wrong.append(f"job {id} of group {head.group} is of bucket {head.bucket}, not {right}")
    for id, *_ in snapshot.ready_heads:
        head = snapshot.header(id)
        if head and head.bucket in whose:
            wrong.append(f"job {id} is anybody's, its bucket is {whose[head.bucket]}'s")
    for name, members in snapshot.own.items():
        for id, score, level, position in members:
            head = snapshot.header(id)
            if head is None:
                continue
            if whose.get(head.bucket) != name:
                wrong.append(f"job {id} is {name}'s, its bucket is {whose.get(head.bucket)}'s")
            said = (9 - head.level) * 10**14 + (head.due_ms or 5 * 10**13 + head.position)
            if (level, position, score) != (head.level, head.position, said):
                wrong.append(f"job {id} at {head} stands as {(score, level, position)}")
    return wrong


def liveness(snapshot: Snapshot) -> list[str]:
    """Who waits has nothing that is its own alone; what is anybody's implies a notified one."""
    if snapshot.meta.get("paused") == "1":
        return []
    interested = snapshot.scores("interested")
    wrong = [
        f"{name} waits, {its} are its own"
        for name, its in snapshot.own.items()
        if its and name in interested
    ]
    common = [id for ids in snapshot.lists.values() for id in ids if snapshot.header(id)]
    common += [id for id, *_ in snapshot.ready_heads]
    if common and interested and not snapshot.scores("notified"):
        wrong.append(f"{common} are ready, {sorted(interested)} wait, none is notified")
    return wrong
