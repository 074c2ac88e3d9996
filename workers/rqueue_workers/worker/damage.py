"""A queue of which something else has overwritten a key: it is left alone, said once, and asked
again with a growing delay; the other queues go on."""

from __future__ import annotations

from os import getpid
from random import random
from time import monotonic

from rqueue.errors import QueueDamaged
from rqueue.logs import logger

log = logger("rqueue.worker")

FIRST_S, LONGEST_S = 0.1, 2.0
"""Seconds between two tries, at first and at most."""


class Damage:
    """Whether a queue is damaged, and when to try again."""

    def __init__(self) -> None:
        self.since = 0.0
        """When it was noticed, by monotonic time; 0.0 = the queue is sound."""
        self.retry_at = 0.0
        self._tries = 0

    def note(self, error: QueueDamaged) -> None:
        """A call met the damage."""
        now = monotonic()
        if not self.since:
            self.since = now
            self._tries = 0
            log.error("worker process %d leaves a queue alone: %s", getpid(), error)
        delay = min(LONGEST_S, FIRST_S * 2 ** min(self._tries, 10)) * (0.5 + 0.5 * random())
        self._tries += 1
        self.retry_at = now + delay

    def over(self, queue: str) -> None:
        """A call succeeded."""
        if self.since:
            lasted = monotonic() - self.since
            log.warning(
                "worker process %d: queue '%s' works again after %.1f s", getpid(), queue, lasted
            )
            self.since = self.retry_at = 0.0

    @property
    def waiting(self) -> float:
        """Seconds until the next try; 0.0 = now, or the queue is sound."""
        return max(0.0, self.retry_at - monotonic()) if self.since else 0.0
