"""In which order jobs come into a subscription: as the queue put them there, over whichever
connection.

A job that is delivered directly comes with a wake-up, one that is pulled with a reply, on another
connection: either may be read first. A reply says behind which job its jobs stand (X-25), so what
was delivered before them comes first, and what was delivered after them behind them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from rqueue.model.job import Delivery
from rqueue.model.job_order import position_of

Unstarted = tuple[bytes, bytes, int]
"""id, value, when it was acquired (ms, Redis's clock)."""


class Arrivals:
    """What came into one subscription and has no place in it yet."""

    def __init__(self) -> None:
        self.aside: list[bytes] = []
        """[id, value, ...] of jobs that were heard of while a reply was awaited."""
        self.held_up = False
        """A reply is being read, and may have to stand behind what is heard now."""
        self.behind = b""
        """The last job that was held before the ones that the last reply brought."""
        self._recalled_to = 0
        self._asked = b""

    def is_old(self, id: bytes, value: bytes) -> bool:
        """Whether a recall covered this delivery: it was on its way when the queue named all that
        this subscription holds. A job that is delivered later has a later position."""
        last = self._recalled_to
        return last > 0 and position_of(Delivery(id, value)) <= last

    def overtake(self, known: Container[bytes]) -> bool:
        """Whether what the last reply brought stands behind a job that is not heard of yet."""
        return bool(self.behind) and self.behind not in known and self.behind != self._asked

    def ask(self) -> None:
        """A recall is made for that job; once, for a damaged one is never named."""
        self._asked = self.behind

    def merge(self, jobs: list[bytes]) -> list[bytes]:
        """What the last reply brought and what was aside, in the order of taking; nothing is aside
        then."""
        aside = self.aside
        if not aside:
            return jobs
        self.aside = []
        if jobs and self.behind in (ids := aside[::2]):
            before = 2 * ids.index(self.behind) + 2
            return [*aside[:before], *jobs, *aside[before:]]
        return [*jobs, *aside]

    def recalled(self, jobs: Sequence[bytes]) -> None:
        """The queue said all that is in this subscription."""
        self.aside = []
        for i in range(0, len(jobs), 2):
            position = position_of(Delivery(jobs[i], jobs[i + 1]))
            self._recalled_to = max(self._recalled_to, position)

    def reconnected(self) -> None:
        """What was on its way over the lost connection never comes."""
        self._recalled_to = 0

    def forget(self) -> None:
        """The registration is over."""
        self.aside = []
        self.held_up = False
        self.behind = self._asked = b""
        self._recalled_to = 0
