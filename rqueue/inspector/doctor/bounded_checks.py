"""Problems of bounded queues: room that is kept for nobody, and producers that nobody calls."""

from __future__ import annotations

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.size_checks import diagnose_size, diagnose_sum, suspect_sizes
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.room_notes import RoomState, room_state
from rqueue.text.numbers import many

LATE_MS = 15_000
"""A grant that is over for so long was met by no step: nothing goes on in the queue."""

ROOM, BYTES, SIZE_OF = ("granted", "wishes", "grants"), "bytes", "size of "
"""What is looked at: what is kept of producers, the sum of bytes, the bytes of a job."""


def suspect_room(walk: Walk) -> list[str]:
    """What is to be looked at closely in this queue."""
    return [*ROOM, BYTES, *(SIZE_OF + id_ for id_ in suspect_sizes(walk))]


def diagnose_room(walk: Walk, subject: str) -> list[Finding]:
    """Whether one part of what is kept of producers, or of bytes, agrees with the rest."""
    if subject == BYTES:
        return diagnose_sum(walk, subject)
    if subject.startswith(SIZE_OF):
        return diagnose_size(walk, subject.removeprefix(SIZE_OF))
    state = walk.execute(room_state(walk.keys))
    says = _says(walk, state, subject)
    if not says:
        return []
    remedy = "count them, and tell those that wait" if subject == "granted" else "drop it"
    if subject == "grants":
        remedy = "end it, and tell those that wait"
    action = Action("room")
    return [Finding("room", subject, walk.keys.queue, subject, says, remedy, action=action)]


def _says(walk: Walk, state: RoomState, subject: str) -> str:
    if subject == "granted":
        kept = sum(state.wishes.get(name) or 0 for name in state.grants)
        if kept == state.granted:
            return ""
        return (
            f"room for {many(kept, 'job')} is kept for producers, and for {state.granted} is"
            " counted: the queue takes too many jobs, or too few"
        )
    if subject == "wishes":
        known = {*state.waiting, *state.grants}
        strays = len(state.wishes.keys() - known)
        without = sum(state.wishes.get(name) is None for name in known)
        if not strays and not without:
            return ""
        return (
            f"{many(strays, 'note')} of producers that do not wait, {without} of those that do"
            " cannot be read"
        )
    late = walk.execute(read_clock(walk.keys)).now - LATE_MS
    over = sum(deadline < late for deadline in state.grants.values())
    if not over:
        return ""
    return f"room is kept for {many(over, 'producer')} whose time to use it is over: others wait"
