"""Why a job waits, in words: for errors of those who wait for it, and for people who look."""

from __future__ import annotations

from rqueue.model.job import JobState

__all__ = ["why_it_waits"]


def why_it_waits(
    state: JobState, queue: str, *, paused: bool, consumers: int, due_in_ms: float = 0
) -> str:
    """What keeps a job in this state from being run now; "" where nothing but its turn does.

    consumers: of its queue, browsers apart. due_in_ms: of a scheduled job, until it is due.
    """
    if state not in (JobState.READY, JobState.SCHEDULED, JobState.PARKED):
        return ""
    reasons = []
    if state is JobState.SCHEDULED and due_in_ms > 0:
        reasons.append(f"it is due in {_seconds(due_in_ms / 1000)}")
    if not consumers:
        reasons.append(f"no worker serves queue '{queue}'")
    elif state is JobState.PARKED:
        reasons.append(f"no worker that serves queue '{queue}' knows its task")
    if paused:
        reasons.append(f"queue '{queue}' is paused")
    return " and ".join(reasons)


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 60:.3g} minutes"
