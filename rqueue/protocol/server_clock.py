"""Redis's clock, as far as a consumer or a supervisor learns of it from replies."""

from __future__ import annotations

from math import inf
from time import monotonic

__all__ = ["LATE_MS", "ServerClock"]

LATE_MS = 50
"""ms by which replies seem to come later than ever, before Redis's clock counts as set back."""


class ServerClock:
    """`offset`: ms to add to this host's monotonic ms to get Redis's clock, as well as known; what
    it is taken for before the first reply."""

    __slots__ = ("offset",)

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def read(self, now: int, asked_at: float = inf) -> None:
        """A reply was made at this time. asked_at: its question was asked then or later, by
        monotonic time; inf = nobody knows."""
        offset = now - monotonic() * 1000
        # replies are late, never early: the largest is the best
        if self.offset - LATE_MS < offset <= self.offset:
            return
        # a process that was frozen reads an old reply: the clock was not set back
        if offset > self.offset or now - asked_at * 1000 + 1 < self.offset:
            self.offset = offset

    def ms(self, at: float) -> int:
        """Redis's clock, in ms, at a monotonic time."""
        return int(at * 1000 + self.offset)

    def due_at(self, due: int, timer: int) -> float:
        """When a job is due, by monotonic time: `timer` ms from now, said Redis, in whole ms and
        some time ago. What many replies taught of its clock is better, and seldom early."""
        at = (due - self.offset) / 1000
        now = monotonic()
        if timer and at <= now:
            # it is not yet: Redis's clock was set back
            self.offset = due - timer - now * 1000
            return now + timer / 1000
        return at
