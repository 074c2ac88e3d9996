"""Which job a log line comes from: for the standard library's logging and for structlog.

    handler.addFilter(JobFields())                        # record.job, record.task, ...
    handler.setFormatter(rqueue.logs.JsonFormatter())     # and they are in the line

    structlog.configure(processors=[add_job, ...])

    logging.getLogger().addHandler(JobLog(logging.INFO))  # and kept with the job: `rqueue log`

All look at `current_job()`, so they cost jobs that log nothing nothing at all.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from rqueue.tasks.context import current_job

__all__ = ["JobFields", "JobLog", "add_job"]


class JobFields(logging.Filter):
    """Adds `job`, `task`, `queue` and `delivery` to the records of a job; filters nothing out."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True, always."""
        for name, value in _fields().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class JobLog(logging.Handler):
    """Keeps what is logged while a job runs with the job, as `current_job().log` does; what is
    logged outside of jobs, and by rqueue itself, is left to others."""

    def emit(self, record: logging.LogRecord) -> None:
        """A line of the job that runs here."""
        job = current_job()
        if job is None or record.name.partition(".")[0] == "rqueue":
            return
        try:
            job.log("%s", self.format(record), level=record.levelno)
        except Exception:
            self.handleError(record)


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
