"""The log lines about jobs that are dead letters now, for the client that reclaims them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import orjson

from rqueue.protocol.commands.consumers import Died
from rqueue.text.escape import escaped
from rqueue.text.numbers import many

__all__ = ["log_died"]


def log_died(log: logging.Logger, queue: str, died: Iterable[Died]) -> None:
    """An ERROR for each job that crashed once too often: which one, how often, and what to do."""
    for job in died:
        cause = orjson.loads(job.cause)
        crashes = many(int(cause.get("crash", 0)), "crash", "crashes")
        attempts = many(int(cause.get("attempt", 0)), "attempt")
        last = ": ".join(str(cause[part]) for part in ("type", "message") if cause.get(part))
        log.error(
            "job %s (task %s, queue %s) is dead after %s in %s; the last one: %s. Look at it with "
            "'rqueue show %s -q %s'; when the task is mended: 'rqueue dead requeue %s --task %s'",
            *map(escaped, (job.id, job.task, queue)),
            crashes,
            attempts,
            escaped(last),
            *map(escaped, (job.id, queue, queue, job.task)),
        )
