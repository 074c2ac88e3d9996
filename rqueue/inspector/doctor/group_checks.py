"""Problems of groups: who has the turn, and what is known of those behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.job_checks import TURN, places_beside
from rqueue.inspector.doctor.members import id_in, member_of, standing_of
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol import commands
from rqueue.protocol.commands.group_notes import (
    group_sizes,
    group_state,
    groups_known,
    turns_of,
    turns_page,
)
from rqueue.protocol.commands.repair import Checked
from rqueue.protocol.replies import raw_text

GROUPS_MAX = 1000
"""Groups that one checkup looks at closely; a repair is followed by the next one."""


def fits_group(which: str, element: Checked, turn: str = "heads") -> bool:
    """Whether this element belongs into `heads`, an owner's set or the sorted set of a group that
    is called so. turn: where that of its group stands which has the turn."""
    id_ = id_in(element.member).decode("utf-8", "surrogateescape")
    if "h" not in element.notes or set("sdr") & set(element.notes):
        return False
    right = (standing_of if which == "heads" else member_of)(element.head, id_)
    return element.member == right and which in places_beside(element.head, turn)


def without_turn(walk: Walk, held: Sequence[tuple[str, bytes]]) -> Iterator[bytes]:
    """Ids of held jobs, given with their groups, that do not have the turn of their group."""
    for start in range(0, len(held), 500):
        some = held[start : start + 500]
        turns = walk.execute(turns_of(walk.keys, [group for group, _ in some]))
        for (_, id_), turn in zip(some, turns, strict=True):
            if turn != raw_text(id_):
                yield id_


def suspect_groups(walk: Walk) -> list[str]:
    """Groups whose turn is with no job that is there, and those with jobs behind the first one."""
    return list(dict.fromkeys(islice(_suspects(walk), GROUPS_MAX)))


def _suspects(walk: Walk) -> Iterator[str]:
    yield from sorted({*walk.groups, *walk.execute(groups_known(walk.keys))})
    cursor = 0
    while True:
        cursor, turns = walk.execute(turns_page(walk.keys, cursor, count=500))
        for group, id_ in turns.items():
            if not _has_turn(walk, id_):
                yield group
        if not cursor:
            return


def _has_turn(walk: Walk, id: str) -> bool:
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    if TURN not in places.lists or places.dead:
        return False
    ready = any(name.startswith(("heads", "own:")) for name in places.lists)
    return ready or places.due is not None or bool(places.holders)


def diagnose_group(walk: Walk, group: str) -> list[Finding]:
    """Whether the turn of this group is with a job that is there, and its others are known."""
    turn, behind, known = walk.execute(group_state(walk.keys, group))

    def finding(kind: str, says: str, remedy: str) -> list[Finding]:
        action = Action("group", which=group)
        return [Finding("groups", kind, walk.keys.queue, group, says, remedy, action=action)]

    if turn is not None and not _has_turn(walk, turn):
        return finding(
            "turn",
            f"the turn of group {group} is with {turn!r}, which is not"
            " ready, held or scheduled: the group stands still",
            "give it to the next of the group",
        )
    if turn is None and behind:
        return finding(
            "turn",
            f"jobs of group {group} wait, and no job has its turn: the group stands still",
            "give it to the first of them",
        )
    for page in walk.pages(f"group:{group}"):
        if any(not fits_group(f"group:{group}", element) for element in page):
            return finding(
                "stray",
                f"behind the first job of group {group} there is something that is no job of it, or"
                " not at its place: its turn would be lost there",
                "take it out",
            )
    if bool(behind) != known:
        return finding(
            "group",
            f"group {group} {'is not' if behind else 'has no jobs that wait and is'} among those"
            " where jobs wait",
            "note it" if behind else "forget it",
        )
    return []


def diagnose_blocked(walk: Walk, subject: str) -> list[Finding]:
    """The number of blocked jobs, compared with those there are; a count that was disturbed says
    nothing."""
    before = walk.meta("blocked", "seq", "acked")
    behind = walk.execute(group_sizes(walk.keys, sorted(walk.groups)))
    counted = int(before[0] or 0)
    if behind == counted or before != walk.meta("blocked", "seq", "acked"):
        return []
    says = f"{behind} jobs wait behind others of their groups, and {counted} are counted"
    action = Action("group", marked=(counted, behind))
    return [
        Finding("counters", "blocked", walk.keys.queue, subject, says, "count them", action=action)
    ]
