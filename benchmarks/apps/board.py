"""A board: counters in a file that all processes map. Reporting there costs Redis nothing.

Standard library alone: the peers' processes import it too. Every thread of every process has a slot
of its own, so that nothing is lost without locks, and fork may happen at any time. Jobs that carry
a number also leave marks: how often the job was started and ended, and when.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import time
import weakref
from pathlib import Path

VARIABLE = "BENCH_BOARD"

SLOT_WORDS = 8
PID, COUNT, FIRST, LAST, BUSY = range(5)
MARK_WORDS = 5
STARTS, ENDS, STARTED, ENDED, RUNNER = range(MARK_WORDS)
SLOTS = 65_536
HEADER_WORDS = 8
MARKS_AT = HEADER_WORDS + SLOTS * SLOT_WORDS


class Board:
    """The mapped file. Times are ns of the monotonic clock, one for all processes of a machine."""

    def __init__(self, path: str | Path) -> None:
        # a bare descriptor: it stays open for the locks, in processes that end in any way
        self._file = os.open(path, os.O_RDWR)
        weakref.finalize(self, os.close, self._file)
        self._map = mmap.mmap(self._file, 0)
        self.words = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, path: str | Path, marks: int = 0) -> Board:
        """Make an empty board with room for `marks` numbered jobs."""
        with open(path, "wb") as file:
            file.truncate(8 * (MARKS_AT + marks * MARK_WORDS))
        return cls(path)

    # -- in the workers ----------------------------------------------------------------------------

    def claim(self) -> int:
        """A free slot for the calling thread: the index of its first word."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            number = self.words[0]
            if number >= SLOTS:
                raise RuntimeError("the board has no free slot left")
            self.words[0] = number + 1
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        at: int = HEADER_WORDS + number * SLOT_WORDS
        self.words[at + PID] = os.getpid()
        return at

    # -- in the bench ------------------------------------------------------------------------------

    @property
    def marks(self) -> int:
        return (len(self.words) - MARKS_AT) // MARK_WORDS

    def _column(self, word: int) -> list[int]:
        end = HEADER_WORDS + min(self.words[0], SLOTS) * SLOT_WORDS
        return self.words[HEADER_WORDS + word : end : SLOT_WORDS].tolist()

    def total(self) -> int:
        """Jobs done, all processes together."""
        return sum(self._column(COUNT))

    def processes(self) -> int:
        """Processes that did a job."""
        pairs = zip(self._column(PID), self._column(COUNT), strict=True)
        return len({pid for pid, count in pairs if count})

    def span(self) -> float:
        """Seconds from the first job's to the last job's end."""
        firsts = [at for at in self._column(FIRST) if at]
        return (max(self._column(LAST)) - min(firsts)) / 1e9 if firsts else 0.0

    def first(self) -> int:
        """When the first job was done; 0 if none was."""
        return min((at for at in self._column(FIRST) if at), default=0)

    def last(self) -> int:
        """When the last one was done; 0 if none was."""
        return max(self._column(LAST), default=0)

    def busy(self) -> float:
        """Seconds spent inside jobs that said so (`timed`)."""
        return sum(self._column(BUSY)) / 1e9

    def mark(self, number: int, word: int) -> int:
        """One mark of a numbered job."""
        value: int = self.words[MARKS_AT + number * MARK_WORDS + word]
        return value

    def column(self, word: int, count: int, first: int = 0) -> list[int]:
        """One kind of mark of `count` jobs."""
        at = MARKS_AT + first * MARK_WORDS
        return self.words[at + word : at + count * MARK_WORDS : MARK_WORDS].tolist()

    def reset(self) -> None:
        """Forget everything but whose slot is whose."""
        for number in range(min(self.words[0], SLOTS)):
            at = HEADER_WORDS + number * SLOT_WORDS
            for word in (COUNT, FIRST, LAST, BUSY):
                self.words[at + word] = 0
        size = len(self.words) - MARKS_AT
        if size:
            self.words[MARKS_AT:] = memoryview(bytes(8 * size)).cast("Q")


class _Slot(threading.local):
    def __init__(self) -> None:
        self.at = _opened().claim()


_board: Board | None = None
_slot: _Slot | None = None
_records: int | None = None


def _opened() -> Board:
    global _board
    if _board is None:
        _board = Board(os.environ[VARIABLE])
    return _board


def _forget() -> None:
    global _slot
    _slot = None


os.register_at_fork(after_in_child=_forget)


def _mine() -> int:
    global _slot
    if _slot is None:
        _slot = _Slot()
    return _slot.at


def hit() -> None:
    """One job is done."""
    at = _mine()
    words = _board.words  # type: ignore[union-attr]
    now = time.monotonic_ns()
    words[at + COUNT] += 1
    words[at + LAST] = now
    if not words[at + FIRST]:
        words[at + FIRST] = now


def record() -> None:
    """One job is done, and has written so to a file: 64 bytes, as a line of an audit log."""
    global _records
    if _records is None:
        path = f"{os.environ[VARIABLE]}.records"
        _records = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(_records, b"%-55d%8d\n" % (time.monotonic_ns(), os.getpid()))
    hit()


def timed(seconds: float) -> None:
    """A job that sleeps, and says how long it took."""
    begin = time.monotonic_ns()
    time.sleep(seconds)
    _mine_busy(begin)


def _mine_busy(begin: int) -> None:
    at = _mine()
    words = _board.words  # type: ignore[union-attr]
    now = time.monotonic_ns()
    words[at + COUNT] += 1
    words[at + BUSY] += now - begin
    words[at + LAST] = now
    if not words[at + FIRST]:
        words[at + FIRST] = begin


def started(number: int) -> int:
    """A numbered job began. Returns when."""
    _mine()
    words = _board.words  # type: ignore[union-attr]
    at = MARKS_AT + number * MARK_WORDS
    words[at + RUNNER] = os.getpid()
    words[at + STARTED] = now = time.monotonic_ns()
    words[at + STARTS] += 1
    return now


def ended(number: int) -> None:
    """A numbered job is done."""
    hit()
    words = _board.words  # type: ignore[union-attr]
    at = MARKS_AT + number * MARK_WORDS
    words[at + ENDED] = time.monotonic_ns()
    words[at + ENDS] += 1
