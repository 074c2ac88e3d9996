"""What really happened, written down outside Redis: one file for each process, by itself.

A record is one line of JSON, written with one `write` to a file opened for appending: it survives
the process that wrote it, whatever ends it. `at` is the machine's monotonic clock, in seconds, the
same for all processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

FOLDER = "SOAK_RECORDS"
"""The variable that tells a program of the soak where its records go."""

LIFE = "SOAK_LIFE"
"""The variable that tells a program for the how-manieth time it was started."""

READY = "ready"
"""The record of a producer that is about to begin."""

Record = dict[str, Any]


class Recorder:
    """Writes the records of this process; after a fork, the child's go to a file of its own."""

    def __init__(self, folder: str | Path | None = None, role: str = "job") -> None:
        self.folder = Path(folder or os.environ[FOLDER])
        self._role = role
        self._pid = 0
        self._file = -1

    def write(self, what: str, **facts: Any) -> None:
        """Note that something happened, now."""
        pid = os.getpid()
        if pid != self._pid:
            self._open(pid)
        line = {"what": what, "at": time.monotonic(), "pid": pid, **facts}
        os.write(self._file, orjson.dumps(line) + b"\n")

    def _open(self, pid: int) -> None:
        path = self.folder / f"{self._role}-{pid}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._pid = pid
        self.write("process", role=self._role, parent=os.getppid())


def read_records(folder: Path) -> Iterator[Record]:
    """All records of all processes, in no order. The last line of a process that was killed while
    it wrote is not there or whole: one write is not torn."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            yield orjson.loads(line)
