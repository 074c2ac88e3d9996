"""How far the lake is behind Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.history import history_page, order
from rqueue.spark.access import Access
from rqueue.spark.history.entries import look
from rqueue.spark.history.stream import Offset, backlog

__all__ = ["Lag", "measure"]


@dataclass(frozen=True, slots=True)
class Lag:
    """The rest that is not archived yet: how many rows of history, and the age of the oldest
    one."""

    rows: int
    seconds: float


def measure(access: Access, reached: Mapping[str, str]) -> Lag:
    """The lag of a stream that has reached these offsets. Raises what Redis fails with."""
    with access.reader() as reader:
        names = sorted(reached)
        ends = look(reader, access, names)
        now = {name: str(Offset(end.last, end.rows)) for name, end in ends.items()}
        oldest: list[int] = []
        for name in names:
            after = Offset.of(reached[name]).entry
            if order(ends[name].last) > order(after):
                found = reader.run(history_page(access.keys(name), f"({after}", count=1))
                oldest += [order(entry.id)[0] for entry in found]
        if not oldest:
            return Lag(0, 0.0)
        # ids of entries are times of Redis itself, whatever the queue's clock says
        clock = reader.run(read_clock(access.keys(names[0])))
        return Lag(backlog(reached, now), max(0.0, (clock.server - min(oldest)) / 1000))
