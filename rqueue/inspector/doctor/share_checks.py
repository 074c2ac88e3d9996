"""Problems of shares: who has the turn in a strand, and what is known of those behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.group_checks import GROUPS_MAX, fits_group
from rqueue.inspector.doctor.job_checks import strand_in
from rqueue.inspector.doctor.members import id_in
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol.commands.group_notes import group_sizes, groups_known
from rqueue.protocol.commands.share_notes import (
    heads_there,
    lined_state,
    strand_state,
    strands_of,
    strands_page,
)
from rqueue.protocol.policies import shares

PAGE = 500
LEVEL_SCORES = 10**14
"""What lies between the scores of two levels."""


def has_shares(walk: Walk) -> bool:
    """Whether the queue has the policy."""
    stamp = walk.meta("v")[0] or b""
    return shares.POLICY.name in stamp.decode("utf-8", "replace").split()


def looks_at_shares(
    walk: Walk,
) -> Iterator[tuple[Iterable[Any], Callable[[Any], list[Finding]]]]:
    """What is to be looked at in a queue with shares, and how."""
    if has_shares(walk):
        yield heads_apart(walk), partial(diagnose_head, walk)
        yield suspect_strands(walk), partial(diagnose_strand, walk)
        yield map(str, sorted(walk.levels)), partial(diagnose_lined, walk)


def is_strand(group: str) -> bool:
    """Whether jobs behind others stand there for their turn: "<level>.<share>"."""
    return group[1:2] == "."


def heads_apart(walk: Walk) -> Iterator[tuple[str, bytes]]:
    """Heads, by strand and member, that are not what is said to be the head there."""
    for page in walk.pages("heads"):
        some = [(strand, one.member) for one in page if (strand := strand_in(one.head))]
        said = walk.execute(strands_of(walk.keys, [strand for strand, _ in some]))
        yield from (one for one, known in zip(some, said, strict=True) if one[1] != known)


def diagnose_head(walk: Walk, head: tuple[str, bytes]) -> list[Finding]:
    """Whether this member, one of the heads, is what its strand is said to have."""
    strand, member = head
    (said,) = walk.execute(strands_of(walk.keys, [strand]))
    (there,) = walk.execute(heads_there(walk.keys, [member]))
    if not there or said == member:
        return []
    id_ = id_in(member).decode("utf-8", "surrogateescape")
    return [
        Finding(
            "shares",
            "head",
            walk.keys.queue,
            id_,
            f"job {id_!r} has a turn that its strand {strand} does not know of: it is delivered"
            " out of its turn",
            "put it into its strand",
            action=Action("job", (id_,), member),
        )
    ]


def suspect_strands(walk: Walk) -> list[str]:
    """Strands whose heads stand nowhere, and those with jobs behind the first one."""
    return list(dict.fromkeys(islice(_suspects(walk), GROUPS_MAX)))


def _suspects(walk: Walk) -> Iterator[str]:
    known = {*walk.groups, *walk.execute(groups_known(walk.keys))}
    yield from sorted(filter(is_strand, known))
    cursor = 0
    while True:
        cursor, strands = walk.execute(strands_page(walk.keys, cursor, count=PAGE))
        there = walk.execute(heads_there(walk.keys, [*strands.values()]))
        yield from (strand for strand, stands in zip(strands, there, strict=True) if not stands)
        if not cursor:
            return


def diagnose_strand(walk: Walk, strand: str) -> list[Finding]:
    """Whether the first job of this strand has the turn, and its others are known."""
    (head,) = walk.execute(strands_of(walk.keys, [strand]))
    state = walk.execute(strand_state(walk.keys, strand, head))

    def finding(kind: str, says: str, remedy: str) -> list[Finding]:
        action = Action("group", which=strand)
        return [Finding("shares", kind, walk.keys.queue, strand, says, remedy, action=action)]

    level = int(strand[0]) if strand[0].isdigit() else 0
    low = (9 - level) * LEVEL_SCORES
    right = state.score is not None and low <= state.score < low + LEVEL_SCORES
    if (state.behind or state.head is not None) and (state.head != head or not right):
        return finding(
            "turn",
            f"jobs of strand {strand} wait, and none of them has a turn: the share gets nothing",
            "give it to the first of them",
        )
    for page in walk.pages(f"group:{strand}"):
        if any(not fits_group(f"group:{strand}", element) for element in page):
            return finding(
                "stray",
                f"behind the first job of strand {strand} there is something that is no job of it,"
                " or not at its place",
                "take it out",
            )
    if state.first is not None and state.first < state.at:
        return finding(
            "first",
            f"in strand {strand} a later job has the turn before the first one",
            "give it to the first one",
        )
    if bool(state.behind) != state.known:
        return finding(
            "strand",
            f"strand {strand} {'is not' if state.behind else 'has no jobs that wait and is'} among"
            " those where jobs wait",
            "note it" if state.behind else "forget it",
        )
    return []


def diagnose_lined(walk: Walk, level: str) -> list[Finding]:
    """The number of jobs behind the heads of a level, compared with those there are; a count that
    was disturbed says nothing."""
    before = walk.meta("blocked", "seq", "acked")
    strands = [group for group in sorted(walk.groups) if group.startswith(f"{level}.")]
    behind = walk.execute(group_sizes(walk.keys, strands))
    counted = walk.execute(lined_state(walk.keys)).get(level, 0)
    if behind == counted or before != walk.meta("blocked", "seq", "acked"):
        return []
    says = f"{behind} jobs of level {level} stand behind others of their shares, counted: {counted}"
    action = Action("group", which=f"{level}.")
    return [Finding("shares", "lined", walk.keys.queue, level, says, "count them", action=action)]
