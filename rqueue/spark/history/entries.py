"""Entries of history streams: their ids, what is there of a queue, and ranges to be read.

A range begins after an entry and ends with one. `Slice` is what one Spark task reads: a part of a
queue with many rows, or several queues with few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from rqueue.logs import logger
from rqueue.protocol.commands.history import (
    BEGIN,
    Entry,
    HistoryEnds,
    history_ends,
    history_part,
    order,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.access import Access
from rqueue.spark.errors import HistoryLost
from rqueue.spark.patience import Reader

__all__ = [
    "Range",
    "Slice",
    "before",
    "cut",
    "look",
    "pages",
    "sizes",
    "slices",
]

log = logger("rqueue.spark")

_LAST = 2**64 - 1
_PAGE_BYTES = 1024**2  # of one reply, about
_MOST, _FIRST = 1000, 32  # entries of one reply


def before(entry: str) -> str:
    """The id that stands directly before one: what comes after it begins with that entry."""
    ms, number = order(entry)
    if number:
        return f"{ms}-{number - 1}"
    return f"{ms - 1}-{_LAST}" if ms else BEGIN


class Range(NamedTuple):
    """Entries of a queue after `after`, up to `until` inclusive; `rows` in them, about.

    exact: that Redis trimmed some of them is an error.
    """

    queue: str
    after: str
    until: str
    rows: int
    exact: bool


class Slice(InputPartition):
    """The stretch that one Spark task reads."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.ranges = tuple(ranges)

    @property
    def rows(self) -> int:
        """How many rows it has, about."""
        return sum(part.rows for part in self.ranges)


def look(reader: Reader, access: Access, queues: Sequence[str]) -> dict[str, HistoryEnds]:
    """The ends of each queue's history now."""
    ends = reader.run_all([history_ends(access.keys(name)) for name in queues])
    return dict(zip(queues, ends, strict=True))


def pages(
    reader: Reader, keys: QueueKeys, after: str, until: str, *, exact: bool
) -> Iterator[list[Entry]]:
    """The entries of a range, in replies of about a megabyte.

    Raises HistoryLost, with `exact`, when some of them were trimmed before they were read.
    """
    count = _FIRST
    while True:
        found, trimmed = reader.run(history_part(keys, after, until, count=count))
        # Entries go from the oldest on: whatever was trimmed by now beyond the last one read is
        # missing from this reply, if it was in the range.
        if exact and order(after) < order(trimmed):
            raise HistoryLost(keys.queue, after, trimmed, found[0].id if found else "")
        if found:
            yield found
        if len(found) < count:
            return
        after = found[-1].id
        size = sum(len(value) for _, fields in found for value in fields.values())
        count = max(1, min(_MOST, _PAGE_BYTES * len(found) // max(size, 1)))


def sizes(reader: Reader, keys: QueueKeys, after: str, until: str) -> Iterator[tuple[str, int]]:
    """The id of each entry in a range, and how many rows it has."""
    for page in pages(reader, keys, after, until, exact=False):
        for id, fields in page:
            yield id, int(fields.get(b"n", b"1"))


def cut(reader: Reader, keys: QueueKeys, whole: Range, step: int) -> Iterator[Range]:
    """A range in parts of about as many rows each, `step` or few more.

    The same range is always cut in the same way.
    """
    if whole.rows <= step:
        yield whole
        return
    parts = -(-whole.rows // step)
    after, last, rows, seen, part = whole.after, whole.after, 0, 0, 0
    for id, count in sizes(reader, keys, whole.after, whole.until):
        # An entry belongs to the part in which its middle row is.
        belongs = (2 * seen + count) * parts // (2 * whole.rows)
        if belongs > part and rows:
            yield whole._replace(after=after, until=last, rows=rows)
            after, rows = last, 0
        part = belongs
        last, rows, seen = id, rows + count, seen + count
    yield whole._replace(after=after, rows=rows)


def slices(ranges: Iterable[Range], step: int) -> list[Slice]:
    """Ranges, in their order, in slices of `step` rows: small ones share a slice."""
    found: list[Slice] = []
    mine: list[Range] = []
    rows = 0
    for part in ranges:
        if mine and rows + part.rows > step:
            found.append(Slice(mine))
            mine, rows = [], 0
        mine.append(part)
        rows += part.rows
    if mine:
        found.append(Slice(mine))
    return found
