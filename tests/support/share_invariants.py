"""What must always hold of a queue with shares, as functions over snapshots."""

from __future__ import annotations

from rqueue.model.job import Header
from rqueue.model.names import group_text
from tests.support.snapshot import Snapshot

LEVEL = 10**14
"""What lies between the scores of two levels."""


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "shares" in snapshot.meta.get("v", "").split()


def of_shares(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        strays = {"strands", "lined", "weights"} & snapshot.keys.keys()
        return [f"a queue without shares has {sorted(strays)}"] if strays else []
    return [*strands(snapshot), *places(snapshot), *tags(snapshot)]


def _standing(head: Header) -> int:
    return (9 - head.level) * LEVEL + (head.due_ms or 5 * 10**13 + head.position)


def _strand(head: Header) -> str:
    return f"{head.level}.{group_text(head.share) if head.share else ''}"


def _behind(snapshot: Snapshot) -> dict[str, list[tuple[str, float, int, int]]]:
    return {name: its for name, its in snapshot.behind.items() if "." in name}


def strands(snapshot: Snapshot) -> list[str]:
    """Each strand with ready jobs has the first of them among the heads, and the others behind."""
    wrong = []
    said = {strand.decode(): text.decode() for strand, text in snapshot.hash("strands").items()}
    heads: dict[str, str] = {}
    for id, score, level, position in snapshot.ready_heads:
        head = snapshot.header(id)
        if head is None:
            continue
        strand = _strand(head)
        if strand in heads:
            wrong.append(f"{id} and {heads[strand]} are both heads of {strand}")
        heads[strand] = id
        member = f"{99 - head.level:02d}{head.position:014d}{id}"
        if said.get(strand) != f"{_standing(head):015d}{member}":
            wrong.append(f"the head of {strand} is {id} at {head}, said is {said.get(strand)}")
        if (level, position) != (head.level, head.position):
            wrong.append(f"{id} at {head} stands among the heads at {(level, position)}")
        if not (9 - level) * LEVEL <= score < (10 - level) * LEVEL:
            wrong.append(f"{id} of level {level} has the score {score}")
    wrong += [
        f"{strand} is said to have a head, {said[strand]}" for strand in said if strand not in heads
    ]
    for strand, members in _behind(snapshot).items():
        first = snapshot.header(heads[strand]) if strand in heads else None
        if first is None:
            wrong.append(f"{members[0][0]} of {strand} stands behind nobody")
        for id, score, level, position in members:
            head = snapshot.header(id)
            if head is None:
                continue
            if (_strand(head), _standing(head)) != (strand, score):
                wrong.append(f"{id} at {head} stands in {strand} at {score}")
            if (level, position) != (head.level, head.position):
                wrong.append(f"{id} at {head} stands in {strand} at {(level, position)}")
            if first and (score, position) < (_standing(first), first.position):
                wrong.append(f"{id} of {strand} stands behind a later one, {heads[strand]}")
    return wrong


def places(snapshot: Snapshot) -> list[str]:
    """Who is of a share stands in no list; those behind others are counted, and known."""
    wrong = []
    for key, ids in snapshot.lists.items():
        for id in ids:
            head = snapshot.header(id)
            if head is not None and head.share:
                wrong.append(f"{id} of share {head.share} stands in {key}")
    lined: dict[str, int] = {}
    for strand, members in _behind(snapshot).items():
        level = strand.partition(".")[0]
        lined[level] = lined.get(level, 0) + len(members)
    said = {level.decode(): int(count) for level, count in snapshot.hash("lined").items()}
    if lined != said:
        wrong.append(f"behind others are {lined} by level, said are {said}")
    behind = sum(map(len, snapshot.behind.values()))
    if behind != int(snapshot.meta.get("blocked", "0")):
        wrong.append(f"{behind} are behind others, counted are {snapshot.meta.get('blocked')}")
    if (found := sorted(snapshot.behind)) != (known := sorted(snapshot.scores("blocked"))):
        wrong.append(f"those with others behind are {found}, known are {known}")
    return wrong


def tags(snapshot: Snapshot) -> list[str]:
    """No strand that has served is ready; a level at rest keeps nothing."""
    wrong = []
    times = {level.decode(): int(time) for level, time in snapshot.hash("turns").items()}
    ready = {strand.decode() for strand in snapshot.hash("strands")}
    for level in snapshot.named("served:"):
        for strand, tag in snapshot.scores(f"served:{level}").items():
            if strand in ready:
                wrong.append(f"{strand} has ready jobs, and has served until {tag}")
            if level not in times:
                wrong.append(f"{strand} has served until {tag}, in a level that rests")
    if not snapshot.ready_heads and not any(snapshot.lists.values()) and times:
        wrong.append(f"nobody waits, and it is {times}")
    return wrong
