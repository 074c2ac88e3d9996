"""What a browser has seen: its cursor, where it began, whether it is at the tail (Q-27, Q-29)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from rqueue.errors import ConfigError, Undecodable
from rqueue.model.expect import shown
from rqueue.model.job import Delivery, has_expired
from rqueue.protocol.commands.read import TAIL, Page

__all__ = ["Browsing", "Start", "afforded"]

Start = Literal["head", "tail"] | datetime | timedelta | float
"""Where a browser begins: at the first job that waits, behind the last one, or with those that were
enqueued at a time or later: an aware datetime, Unix seconds, or so long ago."""


class Browsing:
    """One browser's way through a queue. No I/O.

    The cursor is a place in the queue's order, so it stays right while others take jobs, and a job
    that comes back behind it is not shown again (Q-04). more: there may be something that it has
    not seen. at_tail: the last page was empty and the cursor stood still: nothing waits behind it.
    """

    def __init__(self, start: Start = "head") -> None:
        self.cursor = ""
        self.more = True
        self.at_tail = False
        self._ago_ms: int | None = None
        self._since_ms = 0
        if start == "tail":
            self.cursor = TAIL
        elif isinstance(start, timedelta):
            self._ago_ms = round(start.total_seconds() * 1000)
        elif isinstance(start, datetime):
            if start.tzinfo is None:
                raise ConfigError("start", f"{shown(start)} has no time zone")
            self._since_ms = round(start.timestamp() * 1000)
        elif isinstance(start, int | float) and not isinstance(start, bool) and start >= 0:
            self._since_ms = round(start * 1000)
        elif start != "head":
            raise ConfigError(
                "start",
                f"{shown(start)} is neither 'head' nor 'tail', nor a datetime, Unix seconds or a"
                " timedelta",
            )

    def begin(self, now: int) -> bool:
        """It was registered at this time, Redis's clock; True where the tail has to be asked for
        first: a page from `cursor` with a limit of 1."""
        if self._ago_ms is not None:
            self._since_ms, self._ago_ms = now - self._ago_ms, None
        return self.cursor == TAIL

    def showed(self, page: Page) -> list[Delivery]:
        """Take note of a page: those of its jobs that are to be shown. What has expired is not,
        though nobody may have met it yet."""
        self.at_tail = not (page.jobs or page.more)
        self.more = not self.at_tail
        self.cursor = page.cursor
        jobs = [job for job in page.jobs if not has_expired(job.value, page.now)]
        return [job for job in jobs if self._is_late(job)] if self._since_ms else jobs

    def _is_late(self, job: Delivery) -> bool:
        try:
            return job.enqueued_ms >= self._since_ms
        except Undecodable:
            return True  # nothing says when it came


def afforded(jobs: Sequence[Delivery], bytes: int) -> int:
    """How many of these jobs may be shown with so many bytes (0: no limit); one always."""
    total = 0
    for count, job in enumerate(jobs):
        total += len(job.value)
        if count and 0 < bytes < total:
            return count
    return len(jobs)
