"""Lines that the code of a job has logged."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["LogLine"]

LONGEST = 2000
"""Characters of a line; what is longer is cut."""

_HEAD = re.compile(rb"(\d+),\d+,(\d+),\w*\.\d+,(\d+),(\d+)")


class LogLine(NamedTuple):
    """number: from 1 through the job's life: one that is missing was dropped. delivery: the
    how-manieth time that the job was delivered. at_ms: by Redis's clock. level: as of `logging`."""

    number: int
    delivery: int
    at_ms: int
    level: int
    text: str

    @classmethod
    def of(cls, stored: bytes) -> LogLine:
        """A line as it is kept; what cannot be read is all text, of number 0."""
        head, _, text = stored.partition(b";")
        found = _HEAD.fullmatch(head)
        if found is None:
            return cls(0, 0, 0, 0, stored.decode("utf-8", "replace"))
        number, delivery, at_ms, level = map(int, found.groups())
        return cls(number, delivery, at_ms, level, text.decode("utf-8", "replace"))


def packed_line(at_ms: int, level: int, text: str) -> bytes:
    """A line as it is sent."""
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    return b"%d,%d;%b" % (at_ms, level, text.encode("utf-8", "replace"))
