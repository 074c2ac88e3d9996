"""A tick of a periodic job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Tick", "tick_id"]


def tick_id(name: str, tick_ms: int) -> str:
    """The id of the job of a tick."""
    return f"{name}@{tick_ms}"


@dataclass(frozen=True, slots=True)
class Tick:
    """What a periodic job may ask for by annotation: of which schedule it is, and for when.

    at: the instant that the schedule said, also where the job was enqueued or runs later. missed:
    how many ticks since the job before became no job, because nobody looked in time.
    """

    name: str
    at: datetime
    missed: int = 0

    @classmethod
    def of(cls, id: str, value: bytes) -> Tick | None:
        """The tick of a job, from its id and its stored value; None for any other job."""
        head, semicolon, _ = value.partition(b";")
        name, at, ms = id.rpartition("@")
        if not semicolon or not at or not ms.isdecimal() or len(ms) > 14:
            return None
        for tag in head.split(b"|")[1:]:
            if tag[:1] == b"t" and tag[1:].isdigit():
                return cls(name, datetime.fromtimestamp(int(ms) / 1000, UTC), int(tag[1:]))
        return None
