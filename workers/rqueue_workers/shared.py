"""What a worker shows its supervisor without a message: a page of memory that both map.

The worker writes what it runs before it runs it; the supervisor reads it when the worker died, to
charge the jobs that were running and no others, and in between to enforce hard time limits. Each
side writes its own fields only, one writer per field, so there is no lock. A row's `sequence` is
odd while its id is being written.
"""

from __future__ import annotations

import mmap
import struct
from typing import NamedTuple

ID_BYTES = 512
_HEAD = struct.Struct("<qqqqqq")  # rejoins, phase, jobs done, beats, stop asked, reserved
_ROW = struct.Struct("<qddHH")  # sequence, started, hard deadline, queue index, length of the id
_ROW_BYTES = _ROW.size + ID_BYTES

STARTING, READY, DRAINING, LEAVING = range(4)


class Running(NamedTuple):
    """A job in a slot. Times are `time.monotonic()` of this host; deadline 0.0 = none."""

    slot: int
    queue: int
    id: str
    started: float
    deadline: float


class Shared:
    """The page of one worker process with `slots` slots. Made by the supervisor before the fork."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._map = mmap.mmap(-1, _HEAD.size + slots * _ROW_BYTES)
        self._rows = [_HEAD.size + i * _ROW_BYTES for i in range(slots)]

    # -- the worker writes -------------------------------------------------------------------------

    def start(self, slot: int, queue: int, id: bytes, started: float, deadline: float) -> None:
        """Say that a slot begins with a job. `id` is its UTF-8."""
        at = self._rows[slot]
        map_ = self._map
        (sequence,) = struct.unpack_from("<q", map_, at)
        struct.pack_into("<q", map_, at, sequence | 1)
        start = at + _ROW.size
        map_[start : start + len(id)] = id
        _ROW.pack_into(map_, at, (sequence | 1) + 1, started, deadline, queue, len(id))

    def finish(self, slot: int) -> None:
        """Say that a slot is empty."""
        # the length is the last field: 0 says empty, whatever the rest still holds
        struct.pack_into("<H", self._map, self._rows[slot] + _ROW.size - 2, 0)

    def set_phase(self, phase: int) -> None:
        """STARTING, READY (registered, pulls), DRAINING, LEAVING (recycled: replace it)."""
        struct.pack_into("<q", self._map, 8, phase)

    def rejoined(self) -> int:
        """Count one more registration; returns the number that is part of the consumer's name."""
        (count,) = struct.unpack_from("<q", self._map, 0)
        struct.pack_into("<q", self._map, 0, count + 1)
        return int(count + 1)

    def add_done(self, jobs: int) -> None:
        """Count jobs that ended here."""
        (count,) = struct.unpack_from("<q", self._map, 16)
        struct.pack_into("<q", self._map, 16, count + jobs)

    # -- the supervisor reads ----------------------------------------------------------------------

    @property
    def rejoins(self) -> int:
        """How often the worker registered again: names its consumers, with the base name."""
        return int(struct.unpack_from("<q", self._map, 0)[0])

    @property
    def phase(self) -> int:
        """What the worker says it is doing."""
        return int(struct.unpack_from("<q", self._map, 8)[0])

    @property
    def done(self) -> int:
        """Jobs that ended in this process."""
        return int(struct.unpack_from("<q", self._map, 16)[0])

    def running(self) -> list[Running]:
        """The jobs that run now, or ran when the process died."""
        found = []
        for slot, at in enumerate(self._rows):
            for _ in range(100):
                sequence, started, deadline, queue, size = _ROW.unpack_from(self._map, at)
                id_ = self._map[at + _ROW.size : at + _ROW.size + size]
                if sequence % 2 == 0 and _ROW.unpack_from(self._map, at)[0] == sequence:
                    break
            else:
                continue  # it died between two jobs, while it wrote: neither was running
            if size:
                found.append(Running(slot, queue, id_.decode(), started, deadline))
        return found

    def close(self) -> None:
        """Unmap the page."""
        self._map.close()


def consumer_of(base: str, rejoins: int) -> str:
    """The consumer name of a worker process in all its queues."""
    return f"{base}.{rejoins}"
