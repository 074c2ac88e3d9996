"""What is wrong with one job, from all the places that it is in at one moment."""

from __future__ import annotations

from rqueue.inspector.findings import Action, Finding
from rqueue.store.repair import Places

SEAT_ZERO = 10**13
"""A seat in the schedule is the position above this, as 14 digits, before the id: positions of
promoted jobs begin at its negative."""


def seat_of(position: int, id: str) -> bytes:
    """The member of the schedule for a job."""
    return f"{position + SEAT_ZERO:014d}".encode() + id.encode("utf-8", "surrogateescape")


def list_of(position: int, level: int) -> str:
    """The list that a job waits in."""
    return f"{'due' if position < 0 else 'ready'}:{level}"


def _where(places: Places, own: bytes, seat: bytes) -> list[str]:
    """The places in words, one for each time the job is there."""
    found = [f"in list {name}" for name, times in places.lists.items() for _ in range(times)]
    found += [f"held by {name}" for name, times in places.holders.items() for _ in range(times)]
    if places.dead:
        found.append("among the dead letters")
    if places.due is not None:
        found.append("in the schedule")
    if places.stray is not None and seat != own:
        found.append("in the schedule at a wrong seat")
    return found


def diagnose_job(
    queue: str, id: str, places: Places, seat: bytes = b"", others: tuple[str, ...] = ()
) -> list[Finding]:
    """What is wrong with this job; [] where nothing is. others: unregistered consumers: what they
    hold is their own finding."""

    def finding(invariant: str, kind: str, says: str, remedy: str) -> list[Finding]:
        action = Action("job", (id,), seat, others)
        return [Finding(invariant, kind, queue, id, says, remedy, action=action)]

    head = places.head
    kind, fields = head[:1], head[1:].split(",")
    position = int(fields[0]) if kind == "h" else 0
    level = int(fields[2]) if kind == "h" and len(fields) > 2 and fields[2].isdigit() else 4
    own = seat_of(position, id) if kind == "h" else b""
    where = _where(places, own, seat)
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
            f"what is stored of job {id!r} begins with {head[1:]!r}, which is no header:"
            " whoever settles it fails",
            "put it to the dead letters, its bytes kept",
        )
    if not where:
        return finding(
            "conservation",
            "lost",
            f"job {id!r} was accepted and is in no list, hand, schedule or grave: nobody gets it",
            "put it back at its position",
        )
    if len(where) > 1:
        return finding(
            "conservation",
            "twice",
            f"job {id!r} is {said}: it may run twice",
            "leave it in one place (dead, else held, else waiting, else scheduled)",
        )
    if places.lists and list_of(position, level) not in places.lists:
        return finding(
            "order",
            "misfiled",
            f"job {id!r} waits {said}, but its level and position belong into"
            f" {list_of(position, level)}",
            "move it there, to its position",
        )
    if places.stray is not None and seat != own:
        return finding(
            "order",
            "wrong-seat",
            f"job {id!r} is scheduled at a seat that is not that of its position: it can be"
            " neither cancelled nor shown, and is due in a wrong order",
            "give it its seat",
        )
    if places.dead and not places.cause:
        return [
            Finding(
                "records",
                "no-cause",
                queue,
                id,
                f"the dead letter {id!r} has no cause: nobody can tell why it died",
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
                f"job {id!r} is {said}, and a record says that it has ended: who waits for its"
                " result got an answer, and it will run (again)",
                "forget the record; the job stays and runs",
                action=Action("leftovers", (id,), which="records"),
            )
        ]
    return []
