"""Problems of one job, from all the places that it is in at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from rqueue.inspector.doctor.class_checks import class_of
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.members import member_of, sort_key_in
from rqueue.model.job import parse_header
from rqueue.model.job_limit import JobLimit
from rqueue.model.names import group_text
from rqueue.protocol.commands.repair import Places, level_in, order_in

TURN = "turn"
"""What check_job calls the turn of a job's group, or its permits, among its places."""
DEFERRED = "deferred"
"""And the place of those that wait for others."""
IN_SETS = ("heads", "group:", "class:", "refused:", "own:")
"""How the names of places beside the lists begin."""
HELD_TAG = "h1"
"""In the header of a job that kept its place until its time, once that has come."""


def list_of(head: str) -> str:
    """The list that a job with this header waits in; "" where it is none."""
    order = order_in(head)
    return "" if order is None else f"{'due' if order[0] else 'ready'}:{level_in(head)}"


def group_in(head: str) -> str:
    """The group in a header, as in the names of keys; its bucket where groups are sticky; ""
    without one."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    return header.bucket or group_text(header.group) if header and header.group else ""


def limits_in(head: str) -> dict[str, JobLimit]:
    """The limits in a header, by what they are called in the names of keys."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    found = {}
    for text in header.limits if header else ():
        with suppress(ValueError):
            found[text.rpartition(":")[0]] = JobLimit.parse(text)
    return found


def strand_in(head: str) -> str:
    """The strand of a job with this header where it is ready, as in the names of keys; "" where it
    names neither a share nor limits."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    if not header or not (header.share or header.limits):
        return ""
    return f"{header.level}.{group_text(header.share) if header.share else ''}"


def key_in(head: str) -> str:
    """The key in a header, as it stands there; "" without one."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    return group_text(header.key) if header and header.key else ""


def was_held_in(head: str) -> bool:
    """Whether a job with this header kept its place until its time had come."""
    return HELD_TAG in head.split("|")[1:]


def waits_in(head: str) -> str:
    """What a job with this header waits for, or waited for, as text; "" for nothing."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    return header.waits if header else ""


def refusers_in(head: str) -> str:
    """The terms of the consumers that refused a job with this header, as in the names of keys; ""
    where none has."""
    return next((tag[1:] for tag in head.split("|")[1:] if tag[:1] == "r"), "")


def places_beside(head: str, turn: str = "heads") -> tuple[str, ...]:
    """Where a job with this header waits beside the lists, because it has a group, limits, a key or
    a sort key, kept its place until its time, or was refused; () where it does not. turn: where
    that of its group stands which has the turn."""
    if group := group_in(head):
        return turn, f"group:{group}"
    if strand := strand_in(head):
        return "heads", f"group:{strand}", *(f"group:{limit}" for limit in limits_in(head))
    if terms := refusers_in(head):
        return (f"refused:{terms}",)
    beside = key_in(head) or sort_key_in(head) or was_held_in(head)
    return ("heads",) if beside else ()


def _where(places: Places, own: bytes, member: bytes) -> list[str]:
    """The places in words, one for each time the job is there."""
    found = [
        f"in {name if name.startswith(IN_SETS) else f'list {name}'}"
        for name, times in places.lists.items()
        if name != TURN
        for _ in range(times)
    ]
    found += [f"held by {name}" for name, times in places.holders.items() for _ in range(times)]
    if places.dead:
        found.append("among the dead letters")
    if places.due is not None:
        found.append("in the schedule")
    if places.stray is not None and member != own:
        found.append("in the schedule at a wrong place")
    return found


def diagnose_job(
    queue: str,
    id: str,
    places: Places,
    member: bytes = b"",
    others: tuple[str, ...] = (),
    classes: Mapping[str, str] = MappingProxyType({}),
    turn: str = "heads",
) -> list[Finding]:
    """The problems of this job; [] where it has none. others: unregistered consumers: the jobs they
    hold are their own finding. classes: labels -> number of their class. turn: where it stands
    while it is ready and has the turn of its group."""

    def finding(invariant: str, kind: str, says: str, remedy: str) -> list[Finding]:
        action = Action("job", (id,), member, others)
        return [Finding(invariant, kind, queue, id, says, remedy, action=action)]

    head = places.head
    kind, header = head[:1], head[1:]
    own = member_of(header, id) if kind == "h" else b""
    where = _where(places, own, member)
    said = " and ".join(where)
    if not head:
        if not where:
            return []
        return finding(
            "conservation",
            "no-job",
            f"{said} there is the id {id!r}, but no such job is stored: a consumer passes it over",
            "take the id out",
        )
    if kind == "!":
        if len(where) == 1 and places.lists:
            return []
        return finding(
            "conservation",
            "stray-mark",
            f"the mark of the cancelled job {id!r} is {said or 'in no list'}, not in one list",
            "leave it in one list, or drop it",
        )
    if kind == "?":
        return finding(
            "conservation",
            "broken",
            f"the stored value of job {id!r} begins with {head[1:]!r}, which is no header:"
            " its settling will fail",
            "put it to the dead letters, its bytes kept",
        )
    if not where:
        return finding(
            "conservation",
            "lost",
            f"job {id!r} was accepted and is in no list, held by no consumer,"
            " neither scheduled nor dead: it is lost",
            "put it back at its place",
        )
    if len(where) > 1:
        return finding(
            "conservation",
            "twice",
            f"job {id!r} is {said}: it may run twice",
            "leave it in one place (dead, else held, else waiting, else scheduled)",
        )
    waits = [name for name in places.lists if name != TURN]
    belongs = class_of(header, classes) or places_beside(header, turn) or (list_of(header),)
    if DEFERRED in places.lists and waits_in(header):
        belongs = (DEFERRED,)
    if waits and waits[0] not in belongs:
        return finding(
            "order",
            "misfiled",
            f"job {id!r} waits {said}, but belongs into {' or '.join(belongs)}",
            "move it there, to its place",
        )
    if group_in(header) and (waits == [turn] or places.holders) and TURN not in places.lists:
        return finding(
            "groups",
            "no-turn",
            f"job {id!r} is {said}, but the turn of its group is not with it: two of the group may"
            " run at a time",
            "let it wait for its turn, unless it is held",
        )
    if limits_in(header) and (waits == ["heads"] or places.holders) and TURN not in places.lists:
        return finding(
            "limits",
            "no-permit",
            f"job {id!r} is {said}, and has no permits of its limits: more may run than they allow",
            "let it wait for them, unless it is held",
        )
    if places.stray is not None and member != own:
        return finding(
            "order",
            "wrong-place",
            f"job {id!r} is scheduled at a place that is not that of its level and position: it"
            " can be neither cancelled nor shown, and is due in a wrong order",
            "give it its place",
        )
    if places.dead and not places.cause:
        return [
            Finding(
                "records",
                "no-cause",
                queue,
                id,
                f"the dead letter {id!r} has no cause: why it died is unknown",
                "write one that says that it was lost",
                action=Action("leftovers", (id,), which="cause"),
            )
        ]
    if places.record and not places.dead:
        return [
            Finding(
                "records",
                "ended-alive",
                queue,
                id,
                f"job {id!r} is {said}, and a record says that it has ended: a client that waited"
                " for its result got an answer, and it will run (again)",
                "forget the record; the job stays and runs",
                action=Action("leftovers", (id,), which="records"),
            )
        ]
    return []
