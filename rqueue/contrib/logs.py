"""Which job a log line comes from: for the standard library's logging and for structlog.

    handler.addFilter(JobFields())                        # record.job, record.task, ...
    handler.setFormatter(rqueue.logs.JsonFormatter())     # and they are in the line

    structlog.configure(processors=[add_job, ...])

Both look at `current_job()`, so they cost jobs that log nothing nothing at all.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from rqueue.tasks.context import current_job

__all__ = ["JobFields", "add_job"]


class JobFields(logging.Filter):
    """Adds `job`, `task`, `queue` and `delivery` to the records of a job; filters nothing out."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True, always."""
        for name, value in _fields().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def add_job(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: the same for an event; what it says itself stays."""
    for name, value in _fields().items():
        event.setdefault(name, value)
    return event


def _fields() -> dict[str, Any]:
    job = current_job()
    if job is None:
        return {}
    return {"job": job.id, "task": job.task, "queue": job.queue, "delivery": job.delivery}
