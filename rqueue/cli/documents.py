"""Jobs, queues and consumers as JSON documents: names in words, times in ISO."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rqueue.cli.output import iso
from rqueue.inspector import ConsumerInfo, QueueInfo, Spread, Stats
from rqueue.model.causes import why_dead
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.progress import Progress

TIMES = ("enqueued", "due", "acquired", "started", "finished")


def _dated(facts: dict[str, Any]) -> dict[str, Any]:
    """`..._ms` fields that are moments become ISO times under the name without `_ms`."""
    moments = (
        *("enqueued_ms", "due_ms", "began_ms", "expires_ms", "ended_ms", "since_ms"),
        *("oldest_enqueued_ms", "next_due_ms", "next_tick_ms", "at_ms"),
    )
    return {
        (name.removesuffix("_ms") if name in moments else name): (
            iso(value) if name in moments else value
        )
        for name, value in facts.items()
    }


NOT_OF_A_RECORD = (
    *("task", "args", "kwargs", "opts", "position", "level", "deliveries", "attempts", "crashes"),
    *("max_deliveries", "max_crashes", "expires", "size", "signed_with", "errors"),
)


def is_record(job: JobInfo) -> bool:
    """Whether only the record of an ended job is left: what it ran and how often is in the
    history."""
    return bool(job.ended_ms) and not job.position


def job_document(job: JobInfo, *, details: bool = False) -> dict[str, Any]:
    """One job. `details`: also arguments, options, errors and the result."""
    facts = _dated(asdict(job))
    facts["state"] = str(job.state)
    facts["progress"] = progress_document(job.progress)
    if is_record(job):
        facts.update(dict.fromkeys(NOT_OF_A_RECORD))
    if job.state is JobState.DEAD:
        facts["why"] = why_dead(job.cause)
    if not details:
        for name in ("opts", "errors", "result"):
            del facts[name]
    elif job.state is not JobState.DONE:
        del facts["result"]
    return facts


def progress_document(progress: Progress | None) -> dict[str, Any] | None:
    """How far a job is."""
    if progress is None:
        return None
    return {**_dated(asdict(progress)), "fraction": progress.fraction}


def queue_document(info: QueueInfo) -> dict[str, Any]:
    """One queue."""
    facts = asdict(info)
    facts["oldest_ms"] = info.oldest_ms
    facts["overdue_ms"] = info.overdue_ms
    facts["now"] = iso(info.now)
    return _dated(facts)


def consumer_document(info: ConsumerInfo) -> dict[str, Any]:
    """One consumer."""
    return _dated(asdict(info))


def row_document(row: dict[str, Any]) -> dict[str, Any]:
    """One row of history."""
    return {name: iso(value) if name in TIMES else value for name, value in row.items()}


def stats_document(stats: Stats) -> dict[str, Any]:
    """One report of rates and latencies; times in ms."""

    def times(spread: Spread | None) -> dict[str, float] | None:
        return None if spread is None else {k: round(v, 1) for k, v in asdict(spread).items()}

    return {
        "queue": queue_document(stats.info),
        "seconds": stats.seconds,
        "rates": {name: round(value, 2) for name, value in stats.rates.items()},
        "wait_ms": times(stats.wait),
        "run_ms": times(stats.run),
        "ping_ms": round(stats.ping_ms, 3),
        "drain_s": stats.drain_s,
        "tasks": stats.tasks,
    }
