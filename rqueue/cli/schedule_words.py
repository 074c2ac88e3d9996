"""How a schedule is shown: to people, and to programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson

from rqueue.cli.output import Column, age, iso, span
from rqueue.cli.unique import unique_words
from rqueue.model.schedule_info import OVERDUE_MS, ScheduleInfo
from rqueue.model.terms import Terms

__all__ = ["COLUMNS", "document", "facts", "next_words", "row"]

COLUMNS = (
    *map(Column, ("name", "task", "when", "jitter", "state", "next", "last")),
    *(Column(name, True) for name in ("fired", "skipped", "missed")),
)


def row(info: ScheduleInfo) -> tuple[object, ...]:
    """A schedule as one of several, by `COLUMNS`."""
    return (
        info.name,
        info.task,
        str(info.timing),
        span(info.timing.jitter_ms) if info.timing.jitter_ms else "",
        state_of(info),
        next_words(info),
        _ago(info.last_ms, info.now_ms),
        info.fired,
        info.skipped,
        info.missed,
    )


def facts(info: ScheduleInfo, ticks: Iterable[datetime], parked: bool) -> dict[str, Any]:
    """All of a schedule. parked: whether its last job waits for a worker that knows the task."""
    last = f"{info.last_id}, {_ago(info.last_ms, info.now_ms)}" if info.last_id else None
    said = {
        "schedule": info.name,
        "queue": info.queue,
        "task": info.task,
        "when": str(info.timing),
        "state": state_of(info),
        "arguments": orjson.dumps(info.envelope[1]).decode() if info.envelope[1] else None,
        "keywords": orjson.dumps(info.envelope[2]).decode() if info.envelope[2] else None,
        "missed ticks": info.timing.missed,
        "overlap": info.timing.overlap,
        "jitter": span(info.timing.jitter_ms) if info.timing.jitter_ms else None,
        "window": span(info.timing.window_ms) if info.timing.missed == "all" else None,
        "last job": f"{last}, parked: no worker of the queue knows its task" if parked else last,
        "overdue": f"by {span(info.overdue_ms)}: no worker looked"
        if info.overdue_ms >= OVERDUE_MS
        else None,
        "jobs": info.fired,
        "unique": unique_words(Terms.parse(info.terms).unique) or None,
        "ticks without a job": f"{info.skipped} overlapped, {info.missed} missed"
        + (f", {info.conflicts} with their unique key taken" if info.conflicts else ""),
        "fault": info.fault or None,
        "next": ", ".join(tick.isoformat() for tick in ticks),
    }
    return {name: fact for name, fact in said.items() if fact is not None}


def state_of(info: ScheduleInfo) -> str:
    """How it is with a schedule, for people."""
    return "waits for its job" if info.owed_ms else info.state


def next_words(info: ScheduleInfo) -> str:
    """When a schedule ticks next, for people; of one that nobody looked for, how long it waits."""
    if info.overdue_ms >= OVERDUE_MS:
        return f"overdue by {span(info.overdue_ms)}"
    if info.overdue_ms:
        return "now"
    return age(info.next_ms, info.now_ms)


def _ago(ms: int, now: int) -> str:
    return f"{span(max(0, now - ms))} ago" if ms else ""


def document(info: ScheduleInfo, ticks: Sequence[datetime] = ()) -> dict[str, Any]:
    """A schedule as JSON. Durations are in ms, times in ISO 8601. ticks: its next ones, where
    they were asked for."""
    timing = info.timing
    _, args, kwargs, _ = info.envelope
    return {
        "name": info.name,
        "queue": info.queue,
        "task": info.task,
        "args": args,
        "kwargs": kwargs,
        "cron": list(timing.cron),
        "every_ms": timing.every_ms,
        "tz": timing.tz,
        "missed": timing.missed,
        "overlap": timing.overlap,
        "jitter_ms": timing.jitter_ms,
        "window_ms": timing.window_ms,
        "state": info.state,
        "next": iso(info.next_ms),
        "last": iso(info.last_ms),
        "last_id": info.last_id,
        "overdue_ms": info.overdue_ms,
        "jobs": info.fired,
        "skipped_ticks": info.skipped,
        "missed_ticks": info.missed,
        "conflicting_ticks": info.conflicts,
        "fault": info.fault,
        **({"ticks": [tick.isoformat() for tick in ticks]} if ticks else {}),
    }
