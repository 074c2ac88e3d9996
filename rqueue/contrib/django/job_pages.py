"""Queues and jobs as the rows of the admin page; all text is escaped, as it comes from jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orjson import OPT_INDENT_2, dumps

from rqueue.inspector import Inspector, Look, Page, QueueInfo
from rqueue.model.job_info import JobInfo
from rqueue.text.escape import escaped, escaped_lines

__all__ = ["STATES", "job_facts", "job_rows", "queue_rows"]

STATES = ("ready", "scheduled", "blocked", "parked", "deferred", "held", "dead", "ended")
LONGEST = 120
GAUGES = ("ready", "scheduled", "blocked", "parked", "deferred", "held", "dead")


def queue_rows(inspector: Inspector) -> list[dict[str, Any]]:
    """All queues, by name."""
    return [_queue_row(info) for info in inspector.queues()]


def _queue_row(info: QueueInfo) -> dict[str, Any]:
    counts = {name: getattr(info, name) for name in GAUGES}
    counts["scheduled"] -= info.parked
    return {
        "name": info.name,
        "counts": list(counts.items()),
        "paused": info.paused,
        "consumers": info.acquiring,
        "oldest": _seconds(info.oldest_ms) if info.oldest_ms else "",
    }


def job_rows(page: Page) -> list[dict[str, Any]]:
    """The jobs of a page."""
    return [
        {
            "id": job.id,
            "task": escaped(job.task) or "?",
            "call": _short(job),
            "attempts": job.attempts,
            "when": _when(job.due_ms if job.state == "scheduled" else job.enqueued_ms),
            "what": escaped(job.problem or _cause(job.cause) or job.holder),
        }
        for job in page.jobs
    ]


def job_facts(look: Look) -> list[tuple[str, str]]:
    """What is known of one job, as names and texts."""
    job = look.job
    facts: dict[str, Any] = {
        "state": str(job.state),
        "place": f"{look.place} before it" if look.place >= 0 else "",
        "task": job.task,
        "arguments": _json([*job.args]) if job.args else "",
        "by name": _json(job.kwargs) if job.kwargs else "",
        "options": _json(job.opts) if job.opts else "",
        "priority": str(job.level) if job.enqueued_ms else "",
        "group": job.group,
        "key": job.key,
        "enqueued": _when(job.enqueued_ms),
        "due": _when(job.due_ms),
        "expires": _when(job.expires_ms),
        "ended": _when(job.ended_ms),
        "deliveries": str(job.deliveries or ""),
        "attempts": str(job.attempts or ""),
        "crashes": str(job.crashes or ""),
        "held by": job.holder,
        "progress": str(job.progress or ""),
        "signed with": job.signed_with,
        "result": _json(job.result) if job.result is not None else "",
        "problem": job.problem,
    }
    shown = [(name, escaped_lines(text)) for name, text in facts.items() if text]
    for number, error in enumerate(job.errors, 1):
        shown.append((f"error {number}", escaped_lines(_error(error))))
    if job.cause and job.cause not in job.errors:
        shown.append(("cause", escaped_lines(_error(job.cause))))
    return shown


def _short(job: JobInfo) -> str:
    parts = [_json(value, 0) for value in job.args]
    parts += [f"{name}={_json(value, 0)}" for name, value in job.kwargs.items()]
    text = escaped(", ".join(parts))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _error(error: Mapping[str, Any]) -> str:
    when = _when(error["at"]) if isinstance(error.get("at"), int) else ""
    head = " ".join(filter(None, [when, str(error.get("worker") or ""), _cause(error)]))
    return f"{head}\n{error.get('traceback') or ''}".strip()


def _cause(cause: Mapping[str, Any] | None) -> str:
    if not cause:
        return ""
    name, said = cause.get("type") or cause.get("kind") or "", cause.get("message") or ""
    return f"{name}: {said}" if name and said else str(name or said)


def _json(value: Any, indent: int = OPT_INDENT_2) -> str:
    return dumps(value, option=indent).decode()


def _when(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if ms else ""


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s" if ms < 60_000 else f"{ms // 60_000} min"
