"""The truth about one job: what its attempts do, and what became of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.workers.loop.process import Worker

FINAL = {"none", "value", "reject", "cancelled"}
"""What ends a job for good."""
AGAIN = {"error", "retry", "snooze", "exit", "interrupt"}
"""What brings it back (but for the limit of its attempts)."""


@dataclass
class Truth:
    """What is true of one job. `lasts`: seconds that an attempt takes, None = until `may_end`.
    `verdicts`: what its attempts make of it, one after the other, "none" when there are no more.
    """

    number: int
    queue: str
    task: str
    lasts: float | None
    verdicts: list[str]
    id: str = ""
    known: bool = True
    """Whether every worker knows its task."""
    plain: bool = True
    """Whether nothing moves it out of its place: no delay, no other level."""
    begins: list[str] = field(default_factory=list)
    """The workers that began it."""
    ends: list[str] = field(default_factory=list)
    """What its attempts said in the end."""
    excuses: int = 0
    """How often it may have begun again without having said so itself."""
    cancelled: bool = False
    expires: float = inf
    """When its time to live is over, on the stage."""
    verdict: str = ""
    future: tuple[asyncio.AbstractEventLoop, asyncio.Future[str]] | None = None
    runs: list[Worker] = field(default_factory=list)
    """Who runs it now: two, where the first one's lease was lost."""

    @property
    def may_end(self) -> bool:
        return bool(self.verdict)
