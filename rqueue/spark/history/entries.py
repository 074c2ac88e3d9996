"""Entries of history streams: their ids, what is there of a queue, and ranges to be read.

A range begins after an entry and ends with one. `Slice` is what one Spark task reads: a part of a
queue with many rows, or several queues with few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import redis
from pyspark.sql.datasource import InputPartition

from rqueue.logs import logger
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.access import Access
from rqueue.spark.errors import HistoryLost

__all__ = [
    "BEGIN",
    "Ends",
    "Range",
    "Slice",
    "before",
    "cut",
    "look",
    "order",
    "pages",
    "sizes",
    "slices",
]

log = logger("rqueue.spark")

BEGIN = "0-0"
"""Stands before every entry."""

_LAST = 2**64 - 1
_PAGE_BYTES = 1024**2  # of one reply, about
_MOST, _FIRST = 1000, 32  # entries of one reply
_TOGETHER = 100  # queues that one transaction looks at

Entry = tuple[bytes, dict[bytes, bytes]]


def order(entry: str) -> tuple[int, int]:
    """The id of an entry as what ids are sorted by."""
    ms, _, number = entry.partition("-")
    return int(ms), int(number or 0)


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


@dataclass(frozen=True, slots=True)
class Ends:
    """A queue's history at one moment: its `last` entry, how many `rows` were ever written to it;
    the last entry that Redis `trimmed`, and how many rows are `gone` with all those before it."""

    last: str = BEGIN
    rows: int = 0
    trimmed: str = BEGIN
    gone: int = 0

    def lost_after(self, entry: str) -> bool:
        """Whether entries that were written after `entry` are gone."""
        return order(self.trimmed) > order(entry)


def look(client: redis.Redis, access: Access, queues: Sequence[str]) -> dict[str, Ends]:
    """The ends of each queue's history now; a queue that is not there has none."""
    found: dict[str, Ends] = {}
    # In a cluster, a transaction is of one queue.
    together = 1 if access.cluster else _TOGETHER
    for at in range(0, len(queues), together):
        names = queues[at : at + together]
        with client.pipeline(transaction=True) as pipe:
            for name in names:
                keys = access.keys(name)
                pipe.xrevrange(keys.history, count=1)
                pipe.hmget(keys.meta, "history_trimmed", "history_gone", "history_rows")
            replies: list[Any] = pipe.execute()
        for name, newest, meta in zip(names, replies[::2], replies[1::2], strict=True):
            trimmed = meta[0].decode() if meta[0] else BEGIN
            gone = int(meta[1] or 0)
            last = newest[0][0].decode() if newest else trimmed
            found[name] = Ends(last, gone + int(meta[2] or 0), trimmed, gone)
    return found


def pages(
    client: redis.Redis, keys: QueueKeys, after: str, until: str, *, exact: bool
) -> Iterator[list[Entry]]:
    """The entries of a range, in replies of about a megabyte.

    Raises HistoryLost, with `exact`, when some of them were trimmed before they were read.
    """
    count = _FIRST
    while True:
        with client.pipeline(transaction=True) as pipe:
            pipe.xrange(keys.history, f"({after}", until, count=count)
            pipe.hget(keys.meta, "history_trimmed")
            reply, mark = pipe.execute()
        found = [(id, _named(fields)) for id, fields in reply]
        trimmed = mark.decode() if mark else BEGIN
        # Entries go from the oldest on: whatever was trimmed by now beyond the last one read is
        # missing from this reply, if it was in the range.
        if exact and order(after) < order(trimmed):
            first = found[0][0].decode() if found else ""
            raise HistoryLost(keys.queue, after, trimmed, first)
        if found:
            yield found
        if len(found) < count:
            return
        after = found[-1][0].decode()
        size = sum(len(value) for _, fields in found for value in fields.values())
        count = max(1, min(_MOST, _PAGE_BYTES * len(found) // max(size, 1)))


def _named(fields: Any) -> dict[bytes, bytes]:
    # redis-py leaves what a cluster's transaction answers as it came
    if isinstance(fields, dict):
        return fields
    return dict(zip(fields[::2], fields[1::2], strict=True))


def sizes(
    client: redis.Redis, keys: QueueKeys, after: str, until: str
) -> Iterator[tuple[str, int]]:
    """The id of each entry in a range, and how many rows it has."""
    for page in pages(client, keys, after, until, exact=False):
        for id, fields in page:
            yield id.decode(), int(fields.get(b"n", b"1"))


def cut(client: redis.Redis, keys: QueueKeys, whole: Range, step: int) -> Iterator[Range]:
    """A range in parts of about as many rows each, `step` or few more.

    The same range is always cut in the same way.
    """
    if whole.rows <= step:
        yield whole
        return
    parts = -(-whole.rows // step)
    after, last, rows, seen, part = whole.after, whole.after, 0, 0, 0
    for id, count in sizes(client, keys, whole.after, whole.until):
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
