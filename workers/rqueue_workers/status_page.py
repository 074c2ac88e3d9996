"""What a worker shows its supervisor without a message: a page of memory that both map.

The worker writes what it runs before it runs it; the supervisor reads it when the worker died, to
charge the jobs that were running and no others, and in between to enforce hard time limits. Each
side writes its own fields only, one writer per field, so there is no lock. A row begins and ends
with the same number: where the two differ it is being written.

The other way round there are two fields. One is what the supervisor asks of the worker. SIGTERM is
only a knock that says "look at the page": however often it comes, and from wherever (a terminal, an
init system that signals the whole group), it means what stands there; with nothing there it means
DRAIN. The other one counts, for each queue, how often the supervisor had reason to doubt that the
worker hears anything of it: its Redis was silent and then answered, or does not know the worker any
more. A worker that is blocked on a connection to a host which has vanished, or on a list that
nobody writes to, hears nothing of that. SIGURG, which nothing else uses and which is ignored where
nobody handles it, says that there is news.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

ID_BYTES = 512
WORDS_BYTES = 8192
NOTE = "note: "
"""How a line of a worker's words begins that is no warning."""
# phase, jobs done, fault, stop asked, length of words, words of shards, when to knock
_HEAD = struct.Struct("<qqqqqqd")
_KNOCK_AT = 48
_DONE_AT = 8
# number, id, started, hard deadline, acquired, queue index, length of the id, the number again;
# written in this order, in one go, as the hot loop does it for every job
_ROW = struct.Struct(f"<q{ID_BYTES}sddqHHq")
_SIZE_AT = _ROW.size - 10
_CONDEMNED = struct.Struct(f"<{ID_BYTES}sH")  # id, its length
_SIZE = struct.Struct("<H")
_COUNT = struct.Struct("<q")
_pack = _ROW.pack_into

STARTING, READY, DRAINING, LEAVING, WAITING = range(5)

CONTINUE, DRAIN, STOP = range(3)
"""What the supervisor asks: go on; finish what runs until the spec's `drain` deadline, then give it
back; give everything back and leave now."""


class Running(NamedTuple):
    """A job in a slot. Times are `time.monotonic()` of this host; deadline 0.0 = none. acquired:
    ms, Redis's clock."""

    slot: int
    queue: int
    id: str
    started: float
    deadline: float
    acquired: int


class StatusPage:
    """The page of one worker process with `slots` slots, which serves so many queues: they are
    named by their place among them. Made by the supervisor before the fork."""

    def __init__(self, slots: int, queues: int = 1) -> None:
        self.slots = slots
        self.queues = queues
        self._condemned_at = _HEAD.size + WORDS_BYTES
        self._rejoins_at = self._condemned_at + _CONDEMNED.size
        self._doubts_at = self._rejoins_at + queues * _COUNT.size
        rows = self._doubts_at + queues
        self._map = mmap.mmap(-1, rows + slots * _ROW.size)
        self.tally = memoryview(self._map)[_DONE_AT : _DONE_AT + _COUNT.size].cast("q")
        """One number: the jobs that ended in this process. The worker adds to it in place."""
        with memoryview(self._map) as view:
            self.doubt_counts = view[self._doubts_at : rows]
        """How often the supervisor had doubts of each queue, modulo 256."""
        self._number = 0
        self._rows = [rows + i * _ROW.size for i in range(slots)]

    # -- the worker writes -------------------------------------------------------------------------

    def start(
        self, slot: int, queue: int, id: bytes, started: float, deadline: float, acquired: int
    ) -> None:
        """Say that a slot begins with a job. `id` is its UTF-8."""
        self._number = number = self._number + 1
        row = (number, id, started, deadline, acquired, queue, len(id), number)
        _pack(self._map, self._rows[slot], *row)

    def marker(self, slot: int) -> Callable[[int, bytes, float, float, int, int, int, int], None]:
        """`start` of one slot for the hot loop: called with a number that differs from the one
        before, id, started, deadline, acquired, queue, length of the id, and the number again."""
        return partial(_pack, self._map, self._rows[slot])

    def finish(self, slot: int) -> None:
        """Say that a slot is empty."""
        self.unmarker(slot)()

    def unmarker(self, slot: int) -> Callable[[], None]:
        """`finish` of one slot for the hot loop."""
        # the length says it: 0 is empty, whatever the rest still holds
        return partial(_SIZE.pack_into, self._map, self._rows[slot] + _SIZE_AT, 0)

    def condemn(self, id: bytes) -> None:
        """Say that the process is to be killed if this job runs in it: it was cancelled so."""
        _CONDEMNED.pack_into(self._map, self._condemned_at, id, len(id))

    def set_knock(self, at: float) -> None:
        """Ask for a SIGURG at this time, by `time.monotonic()`; 0.0: for none. A job whose soft
        limit ends may hold the interpreter's lock: no other thread here could knock then."""
        struct.pack_into("<d", self._map, _KNOCK_AT, at)

    def set_phase(self, phase: int) -> None:
        """STARTING, READY (registered, pulls), DRAINING, LEAVING (recycled: replace it), WAITING
        (drained, but for outcomes to be reported to a Redis that is gone)."""
        struct.pack_into("<q", self._map, 0, phase)

    def rejoined(self, queue: int) -> None:
        """Count one more registration in a queue: the number is part of the consumer's name
        there."""
        _COUNT.pack_into(self._map, self._rejoins(queue), self.rejoins(queue) + 1)

    def heard_of_shards(self) -> None:
        """Count one more word of a shard: its table is to be looked at."""
        struct.pack_into("<q", self._map, 40, self.shard_words + 1)

    def blame_us(self) -> None:
        """Say that the process is about to end by a fault of rqueue's own: no job is to blame."""
        struct.pack_into("<q", self._map, 16, 1)

    @property
    def asked(self) -> int:
        """What the supervisor asks: CONTINUE, DRAIN or STOP."""
        return int(struct.unpack_from("<q", self._map, 24)[0])

    @property
    def doubts(self) -> bytes:
        """How often the supervisor had doubts of each queue, a byte for each, to be compared."""
        return self._map[self._doubts_at : self._doubts_at + self.queues]

    # -- the supervisor writes ---------------------------------------------------------------------

    def ask(self, what: int) -> None:
        """Ask the worker to DRAIN or STOP; then knock with SIGTERM. Never back again."""
        if what > self.asked:
            struct.pack_into("<q", self._map, 24, what)

    def doubt(self, queue: int) -> None:
        """Say that the worker may hear nothing of a queue any more; then knock with SIGURG."""
        at = self._doubts_at + queue
        self._map[at] = (self._map[at] + 1) % 256

    # -- the supervisor reads ----------------------------------------------------------------------

    def rejoins(self, queue: int) -> int:
        """How often the worker registered again in a queue: names its consumer there, with the base
        name."""
        return int(_COUNT.unpack_from(self._map, self._rejoins(queue))[0])

    def _rejoins(self, queue: int) -> int:
        return self._rejoins_at + queue * _COUNT.size

    @property
    def phase(self) -> int:
        """What the worker says it is doing."""
        return int(struct.unpack_from("<q", self._map, 0)[0])

    @property
    def done(self) -> int:
        """Jobs that ended in this process."""
        return self.tally[0]

    @property
    def knock_at(self) -> float:
        """When the worker wants a SIGURG; 0.0 = never."""
        return float(struct.unpack_from("<d", self._map, _KNOCK_AT)[0])

    @property
    def shard_words(self) -> int:
        """How often a shard had a word for this worker."""
        return int(struct.unpack_from("<q", self._map, 40)[0])

    @property
    def our_fault(self) -> bool:
        """Whether the worker said that it fails by a fault of rqueue's own."""
        return bool(struct.unpack_from("<q", self._map, 16)[0])

    @property
    def words(self) -> str:
        """Lines that the supervisor logs once, whatever number of workers say the same: at the
        start what looks like a mistake, and notes (`NOTE`); at the end (exit codes 1 and 4) why it
        cannot work. The worker sets them."""
        (size,) = struct.unpack_from("<q", self._map, 32)
        return self._map[_HEAD.size : _HEAD.size + size].decode("utf-8", "replace")

    @words.setter
    def words(self, text: str) -> None:
        words = text.encode("utf-8", "replace")[:WORDS_BYTES]
        self._map[_HEAD.size : _HEAD.size + len(words)] = words
        struct.pack_into("<q", self._map, 32, len(words))

    @property
    def busy(self) -> bool:
        """Whether a job runs now."""
        return any(_SIZE.unpack_from(self._map, at + _SIZE_AT)[0] for at in self._rows)

    def running(self) -> list[Running]:
        """The jobs that run now, or ran when the process died."""
        found = []
        for slot, at in enumerate(self._rows):
            if not _SIZE.unpack_from(self._map, at + _SIZE_AT)[0]:
                continue
            for _ in range(100):
                row = _ROW.unpack_from(self._map, at)
                first, id_, started, deadline, acquired, queue, size, last = row
                if first == last:
                    break
            else:
                continue  # it died between two jobs, while it wrote: neither was running
            if size:
                found.append(Running(slot, queue, id_[:size].decode(), started, deadline, acquired))
        return found

    @property
    def condemned(self) -> list[Running]:
        """The job with which the process is to be killed, where it runs."""
        id_, size = _CONDEMNED.unpack_from(self._map, self._condemned_at)
        if not size:
            return []
        return [job for job in self.running() if job.id.encode() == id_[:size]]

    def close(self) -> None:
        """Unmap the page."""
        self.tally.release()
        self.doubt_counts.release()
        self._map.close()


def consumer_of(base: str, rejoins: int) -> str:
    """The consumer name of a worker process in a queue where it registered again so often."""
    return f"{base}.{rejoins}"


def worker_of(consumer: str) -> str:
    """The base name that a consumer's name was made of."""
    return consumer.rpartition(".")[0]
