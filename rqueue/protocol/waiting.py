"""Why a job has not ended, in words: for errors of waits, and for people who look."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from rqueue.model.job import JobState

__all__ = ["LEASE_GRACE_MS", "error_said", "why_it_waits"]

LONGEST_ERROR = 200

LEASE_GRACE_MS = 5_000
"""A lease that ended has to be reclaimed; for so long it is no problem that it was not yet."""


def why_it_waits(
    state: JobState,
    queue: str,
    *,
    paused: bool,
    consumers: int,
    lapsed: int = 0,
    due_in_ms: float = 0,
    failed: str = "",
    holder: str = "",
    lapsed_ms: float = 0,
    runs_ms: float = 0,
    unheard: str = "",
    limits: Sequence[str] = (),
    waiter: str = "",
) -> str:
    """What became of a job in this state so far, and what keeps it from being run now; "" where
    nothing but its turn does.

    consumers: of its queue that are alive, browsers apart. lapsed: others of it, whose leases have
    ended. due_in_ms: of a scheduled job, until it is due. failed: its last attempt and the error,
    as `error_said` says it. holder: the consumer that has it; lapsed_ms: since when its lease has
    ended; runs_ms: for how long it has been running there, as far as that is known. unheard: why
    none of the consumers takes it. limits: of one that waits for permits, in words, those of which
    none is free. waiter: the job of the same queue whose code waits for this one, "" where none
    does.
    """
    said = [failed] if failed else []
    if state is JobState.HELD and holder:
        runs = f", and has been running it for {_span(runs_ms)}" if runs_ms > 0 else ""
        if lapsed_ms > LEASE_GRACE_MS:
            runs = f", whose lease ended {_span(lapsed_ms)} ago, and no pool has taken the job back"
        said.append(f"consumer '{holder}' has it{runs}")
    reasons = [f"waits for {limit}" for limit in limits]
    if state in (JobState.READY, JobState.SCHEDULED, JobState.PARKED):
        if state is JobState.SCHEDULED and due_in_ms > 0:
            again = "is tried again" if failed else "is due"
            reasons.append(f"it {again} in {_span(due_in_ms)}")
        if not consumers:
            reasons.append(f"no worker serves queue '{queue}'{_lapsed(lapsed)}")
        elif state is JobState.PARKED:
            reasons.append(f"no worker that serves queue '{queue}' knows its task")
        elif unheard:
            reasons.append(unheard)
        elif waiter and consumers == 1:
            reasons.append(
                f"queue '{queue}' has one worker process, in which job '{waiter}' waits for it:"
                " start the pool with more, or let the job follow (a workflow)"
            )
        if paused:
            reasons.append(f"queue '{queue}' is paused")
    return "; ".join([*said, " and ".join(reasons)] if reasons else said)


def error_said(attempts: int, error: bytes) -> str:
    """What became of the last of so many attempts that failed; "" where there was none. error: as
    it is kept, JSON; "" where it is not."""
    if not attempts:
        return ""
    try:
        known = orjson.loads(error)
    except orjson.JSONDecodeError:
        known = {}
    if not isinstance(known, dict) or known.get("kind") == "suspected":
        return f"attempt {attempts} failed"
    kind, message = known.get("type") or known.get("kind") or "", known.get("message") or ""
    what = " ".join(f"{kind}: {message}".strip(": ").split())
    if len(what) > LONGEST_ERROR:
        what = what[:LONGEST_ERROR] + "…"
    return f"attempt {attempts} failed ({what})" if what else f"attempt {attempts} failed"


def _lapsed(consumers: int) -> str:
    if not consumers:
        return ""
    whose = "the lease of its one consumer has"
    if consumers > 1:
        whose = f"the leases of its {consumers} consumers have"
    return f" any more: {whose} ended"


def _span(ms: float) -> str:
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.3g} s"
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{count:,.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"
    return f"{seconds / 60:.3g} minutes"
