"""A call that settles, on its way, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rqueue.model.parents import has_dependants
from rqueue.protocol import commands
from rqueue_workers.worker.outcome import Ack, Done, Outcome, Unfinished

Held = tuple[bytes, bytes]
"""id, value."""


class Flight(NamedTuple):
    """A call that settles and what it tells, until its reply is there."""

    call: commands.ScriptCall[Any]
    window: int | None
    acks: list[Ack]
    dones: list[Done]
    others: list[Unfinished]
    back: list[Held]
    whole: bool
    """Whether that is all that had ended."""

    @property
    def awaited(self) -> bool:
        """Whether jobs of other queues may wait for one of those that are done."""
        done: tuple[Sequence[Ack | Done], ...] = (self.acks, self.dones)
        return any(has_dependants(row[1]) for rows in done for row in rows)

    @property
    def jobs(self) -> Iterator[Held]:
        """What it says something of: (id, value)."""
        ended: tuple[Sequence[Outcome], ...] = (self.acks, self.dones, self.others)
        for rows in ended:
            for row in rows:
                yield row[0], row[1]
        yield from self.back
