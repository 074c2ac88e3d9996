"""A schedule of a queue, as it is stored and as people see it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import Undecodable
from rqueue.model.envelope import unpack
from rqueue.model.schedule import Timing

__all__ = ["OVERDUE_MS", "ScheduleInfo", "ScheduleState"]

OVERDUE_MS = 5000
"""A tick that has waited so long for a consumer that looks is said to be overdue."""

ScheduleState = Literal["active", "paused", "retired"]


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """One schedule. Times are ms since the epoch by Redis's clock, 0 = none (yet).

    next_ms: its next tick; one that is past waits for a consumer that looks. last_ms, last_id: tick
    and id of its last job. made_ms: when it was made. fired: how many jobs it made. skipped: ticks
    that became none because of the job before; missed: because nobody looked in time; conflicts:
    because another job had the unique key. owed_ms: a tick that waits for the end of the job
    before. fault: why its last tick could not be enqueued.
    nexts: the ticks that are known ahead; after_ms: what became of those up to this one is decided.
    now_ms: when this was read. code: hash of what code declares of it, "" = none does; edited:
    whether people changed it since; declared: what the code said. version: of what is stored.
    terms, job, seal: what is enqueued, and a signature of it all.
    """

    name: str
    queue: str
    task: str
    timing: Timing
    state: ScheduleState = "active"
    next_ms: int = 0
    last_ms: int = 0
    last_id: str = ""
    made_ms: int = 0
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    owed_ms: int = 0
    fault: str = ""
    nexts: tuple[int, ...] = ()
    after_ms: int = 0
    now_ms: int = 0
    version: str = ""
    terms: str = ""
    job: str = field(default="", repr=False)
    seal: str = field(default="", repr=False)
    code: str = ""
    edited: bool = False
    declared: str = field(default="", repr=False)
    conflicts: int = 0

    @classmethod
    def read(cls, queue: str, name: str, stored: bytes, next_ms: int, now_ms: int) -> ScheduleInfo:
        """A schedule as it is stored. Raises Undecodable."""
        try:
            said: dict[str, Any] = loads(stored)
            nexts = tuple(map(int, said["nexts"] or ()))
            return cls(
                name,
                queue,
                said["task"],
                Timing.parse(said["timing"]),
                said["state"],
                next_ms or (nexts[0] if nexts and said["state"] == "active" else 0),
                said.get("last", 0),
                said.get("last_id", ""),
                said.get("made", 0),
                said.get("fired", 0),
                said.get("skipped", 0),
                said.get("left_out", 0),
                said.get("owed", 0),
                said.get("fault", ""),
                nexts,
                said.get("after", 0),
                now_ms,
                str(said["version"]),
                said["terms"],
                said["job"],
                said.get("seal", ""),
                said.get("code", ""),
                said.get("edited", False),
                said.get("declared", ""),
                said.get("conflicts", 0),
            )
        except (JSONDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Undecodable(f"not a schedule ({error!r})", stored) from None

    @property
    def as_declared(self) -> ScheduleInfo:
        """The schedule as its code says it. Raises Undecodable where none does."""
        try:
            said = loads(self.declared)
            timing = Timing.parse(said["timing"])
            return replace(
                self,
                task=said["task"],
                timing=timing,
                terms=said["terms"],
                job=said["job"],
                edited=False,
            )
        except (JSONDecodeError, ValueError, KeyError, TypeError) as error:
            raise Undecodable(f"no declaration ({error!r})", self.declared.encode()) from None

    @property
    def overdue_ms(self) -> int:
        """How long its next tick has waited for a consumer that looks; 0 = it is not due, or the
        schedule is paused."""
        late = self.now_ms - self.next_ms
        return late if self.state == "active" and self.next_ms and late > 0 else 0

    @property
    def body(self) -> bytes:
        """What a signature of the schedule covers: all that says what runs when."""
        return dumps([self.timing.text, self.terms, self.job])

    @property
    def envelope(self) -> tuple[str, list[Any], dict[str, Any], dict[str, Any]]:
        """Task, args, kwargs and opts of its jobs. Raises Undecodable."""
        return unpack(self.job.encode())

    def same(self, other: ScheduleInfo) -> bool:
        """Whether both say the same."""
        mine = self.timing, self.state, self.terms, self.job, self.edited
        return mine == (other.timing, other.state, other.terms, other.job, other.edited)

    def moved(self, other: ScheduleInfo) -> bool:
        """Whether the ticks of `other` are to be computed anew: it has other instants, or goes on
        after a pause."""
        mine = self.timing.cron, self.timing.every_ms, self.timing.tz
        its = other.timing.cron, other.timing.every_ms, other.timing.tz
        return mine != its or (self.state != "active" and other.state == "active")
