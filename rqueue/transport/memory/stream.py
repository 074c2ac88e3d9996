"""A stream: entries by their ids, which only grow."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["Entry", "Stream", "StreamId", "id_text"]

StreamId = tuple[int, int]
"""Milliseconds, and a number among those of one millisecond."""
Entry = tuple[StreamId, list[bytes]]
"""An id, and fields with their values, one after the other."""


def id_text(id: StreamId) -> bytes:
    """An id as it is written."""
    return b"%d-%d" % id


class Stream:
    """An empty stream is one still: it remembers its last id."""

    __slots__ = ("entries", "ids", "last")

    def __init__(self) -> None:
        self.ids: list[StreamId] = []
        self.entries: list[list[bytes]] = []
        self.last: StreamId = (0, 0)

    def append(self, now_ms: int, fields: list[bytes]) -> StreamId:
        """Add an entry under the next id."""
        ms, number = self.last
        self.last = (now_ms, 0) if now_ms > ms else (ms, number + 1)
        self.ids.append(self.last)
        self.entries.append(fields)
        return self.last

    def remove(self, id: StreamId) -> bool:
        """Take an entry out; whether it was there."""
        at = bisect_left(self.ids, id)
        if at == len(self.ids) or self.ids[at] != id:
            return False
        del self.ids[at], self.entries[at]
        return True

    def between(self, first: StreamId, last: StreamId) -> list[Entry]:
        """The entries from one id to another, both included."""
        low, high = bisect_left(self.ids, first), bisect_right(self.ids, last)
        return list(zip(self.ids[low:high], self.entries[low:high], strict=True))
