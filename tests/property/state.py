"""What the model knows of a queue, and how to look at it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.property.entities import Consumer, Job


@dataclass
class State:
    """What a queue knows."""

    keep_ms: int = 600_000
    now: int = 0
    seq: int = 0
    terms: int = 0
    turns: int = 0
    paused: bool = False
    ranked: bool = False
    timer: str = ""
    since: int | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Cancelled while waiting: id -> (due, position); the element still stands in its list."""
    lists: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """(-level, 0 for due and 1 for ready) -> ids by due time and position: sorted keys are the
    queue's order."""
    grouped: bool = False
    """Whether jobs may have groups: what has to end does so before a pull, which takes what was
    behind it."""
    group_turns: dict[str, str] = field(default_factory=dict)
    """group -> id of the job that has its turn."""
    latest: dict[str, str] = field(default_factory=dict)
    """key -> id of the last of its jobs that was ready, while that lives."""
    unique: dict[str, str] = field(default_factory=dict)
    """key -> id of the unique job that has it."""
    periods: dict[str, int] = field(default_factory=dict)
    """key -> when the period of the job is over that has it, or had."""
    open: list[str] = field(default_factory=list)
    """Ready jobs with groups or keys, best first."""
    blocked: dict[str, list[str]] = field(default_factory=dict)
    """group -> ids behind the one that has the turn, by position."""
    scheduled: list[tuple[int, int, int, str]] = field(default_factory=list)
    """(due, -level, position, id), sorted."""
    returns_to: dict[str, str] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    outgoing: list[str] = field(default_factory=list)
    """On their way to another queue."""
    ended: dict[str, str] = field(default_factory=dict)
    older: dict[str, str] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    byte_waiters: dict[str, list[str]] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What `meta` counts, but for cancelled, purged and requeued jobs."""
    behind: str = ""
    """The job after which the last pull put what it took, "" where there was none."""
    lapsed: dict[str, list[tuple[str, int, bool]]] = field(default_factory=dict)
    """What the ends of leases cost: consumer -> (id, position, whether it was charged)."""
    crashed_until: list[int] = field(default_factory=list)
    """When the jobs are due that crashed again in the call that goes on."""
    ttl: tuple[int, int, int] = 0, 0, 0
    """Default, least and greatest time to live, ms; 0: none."""
    ring: int = 0
    """Ready jobs that it keeps; 0: all."""
    ring_bytes: int = 0
    """Their bytes; 0: any number."""
    lifo: bool = False
    """Whether all jobs come to the front."""
    kept_dead: bool = False
    """Whether what expires becomes a dead letter."""
    discards: bool = False
    """Whether what fails for good ends, in place of being a dead letter."""
    over: list[str] = field(default_factory=list)
    """Jobs that the call which goes on found expired, and that it ends last."""

    def fail(self, ids: list[str]) -> None:
        """They have failed for good."""
        if self.discards:
            for id in ids:
                del self.jobs[id]
        else:
            self.dead += ids

    def in_state(self, state: str) -> list[Consumer]:
        return [c for c in self.consumers.values() if c.state == state]

    def interested(self) -> list[Consumer]:
        """Those who wait, the one to be woken first in front."""
        return sorted(self.in_state("interested"), key=lambda c: (-c.priority, c.turn))

    def knows(self, id: str) -> bool:
        return id in self.jobs or id in self.marks or id in self.ended or id in self.older

    def holder(self, id: str) -> Consumer | None:
        return next((c for c in self.consumers.values() if id in c.held), None)

    def elements(self) -> int:
        return sum(map(len, self.lists.values())) + len(self.open)

    def work_waits(self) -> bool:
        return self.elements() > 0 or (bool(self.scheduled) and self.scheduled[0][0] <= self.now)

    def size(self, ids: list[str]) -> int:
        return sum(len(self.jobs[id].value) for id in ids)

    def order(self, id: str) -> tuple[int, int]:
        """Where it stands in its list."""
        return self.marks[id] if id in self.marks else self.jobs[id].order
