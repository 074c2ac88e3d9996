"""What must always hold of a queue whose consumers refuse jobs, as functions over snapshots."""

from __future__ import annotations

from tests.support.snapshot import Snapshot


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "refusals" in snapshot.meta.get("v", "").split()


def refusers(snapshot: Snapshot, id: str) -> str:
    """The terms of the consumers that refused a job, as its header has them."""
    head = snapshot.jobs.get(id, b"").partition(b";")[0].decode("utf-8", "replace")
    return next((tag[1:] for tag in head.split("|")[1:] if tag[:1] == "r"), "")


def may_take(snapshot: Snapshot, consumer: str, terms: str) -> bool:
    """Whether a consumer is none of those that refused."""
    return snapshot.consumers.get(consumer, {}).get("term") not in terms.split(".")


def takes(snapshot: Snapshot, consumer: str, ids: list[str]) -> list[str]:
    """Those of these ready jobs that a consumer takes; with priorities of consumers none, as it
    leaves some to others."""
    if not used(snapshot):
        return ids
    if snapshot.meta.get("ranked") == "1":
        return []
    return [id for id in ids if may_take(snapshot, consumer, refusers(snapshot, id))]


def of_refusals(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        kept = [key for key in snapshot.keys if key.startswith("refus")]
        return [f"a queue without refusals has {kept}"] if kept else []
    return [*places(snapshot), *liveness(snapshot)]


def places(snapshot: Snapshot) -> list[str]:
    """A ready job that consumers refused stands in the set of those, at its place; it is held by
    none of them."""
    wrong = []
    known = snapshot.members("refusals")
    for terms, members in snapshot.refused.items():
        if terms not in known:
            wrong.append(f"jobs stand in refused:{terms}, known are {sorted(known)}")
        for id, score, level, position in members:
            if refusers(snapshot, id) != terms:
                wrong.append(f"job {id}, refused by {refusers(snapshot, id)}, stands in {terms}")
            head = snapshot.header(id)
            if head is None:
                continue
            said = (9 - head.level) * 10**14 + (head.due_ms or 5 * 10**13 + head.position)
            if (level, position, score) != (head.level, head.position, said):
                wrong.append(f"job {id} at {head} stands as {(score, level, position)}")
    for key, ids in snapshot.lists.items():
        wrong += [
            f"job {id}, refused by {refusers(snapshot, id)}, stands in {key}"
            for id in ids
            if refusers(snapshot, id)
        ]
    for consumer, ids in snapshot.held.items():
        wrong += [
            f"{consumer} holds {id}, which it refused"
            for id in ids
            if not may_take(snapshot, consumer, refusers(snapshot, id))
        ]
    return wrong


def liveness(snapshot: Snapshot) -> list[str]:
    """Work that an interested consumer could take implies a notified one that could."""
    if snapshot.meta.get("paused") == "1":
        return []
    ready = [terms for terms, members in snapshot.refused.items() if members]
    if any(snapshot.header(id) for ids in snapshot.lists.values() for id in ids):
        ready.append("")
    notified = list(snapshot.scores("notified"))
    return [
        f"{name} waits, jobs that {terms or 'nobody'} refused are ready, none who may is notified"
        for name in snapshot.scores("interested")
        for terms in ready
        if may_take(snapshot, name, terms)
        and not any(may_take(snapshot, other, terms) for other in notified)
    ]
