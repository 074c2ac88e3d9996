"""Why a worker process ended, in the words of a dead letter and of the log."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True, slots=True)
class ExitCause:
    """How a process ended. code: its exit code, None when a signal ended it."""

    code: int | None
    signal: str = ""

    @classmethod
    def of(cls, status: int) -> ExitCause:
        """Read a status of waitpid."""
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return cls(code)
        try:
            return cls(None, signal.Signals(-code).name)
        except ValueError:  # a real-time signal
            return cls(None, f"signal {-code}")

    def __str__(self) -> str:
        return f"was killed by {self.signal}" if self.code is None else f"ended with {self.type}"

    @property
    def type(self) -> str:
        """The `type` of a cause: SIGSEGV, "exit code 3"."""
        return self.signal or f"exit code {self.code}"


def crash_cause(exit_cause: ExitCause, worker: str, at: int, out_of_memory: bool) -> bytes:
    """The cause JSON of jobs that were running when their process died by itself. at: ms."""
    kind = exit_cause.type
    said = f"the worker process {exit_cause} while it ran this job"
    if out_of_memory and exit_cause.signal == "SIGKILL":
        kind = "MemoryLimit"
        said = "the kernel killed the worker process while it ran this job: out of memory"
    return _cause("crash", kind, said, worker, at)


def limit_cause(seconds: float, worker: str, at: int) -> bytes:
    """The cause JSON of a job that ran past its hard limit of `seconds`, which are its `limit`."""
    said = f"the job ran longer than its hard limit of {seconds:g} s; its process was killed"
    return _cause("time_limit", "HardTimeLimit", said, worker, at, limit=seconds)


def quiet_cause(worker: str, at: int) -> bytes:
    """For a reclaim that charges nobody."""
    return _cause("crash", "", "", worker, at)


def _cause(kind: str, type_: str, message: str, worker: str, at: int, **more: float) -> bytes:
    return orjson.dumps(
        {
            "kind": kind,
            "type": type_,
            "message": message,
            "traceback": "",
            "at": at,
            "worker": worker,
            **more,
        }
    )


class OomKills:
    """Counts the kernel's out-of-memory kills in this control group (Linux, cgroup v2)."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), me: Path = Path("/proc/self/cgroup")):
        self._file: Path | None = None
        try:
            for line in me.read_text().splitlines():
                if line.startswith("0::/"):
                    self._file = root / line[4:] / "memory.events"
        except OSError:
            pass  # not Linux: nobody counts
        self._seen = self._count()

    def happened(self) -> bool:
        """Whether there was one since the last time that this was asked."""
        before, self._seen = self._seen, self._count()
        return self._seen > before

    def _count(self) -> int:
        if self._file is None:
            return 0
        try:
            for line in self._file.read_text().splitlines():
                word, _, number = line.partition(" ")
                if word == "oom_kill":
                    return int(number)
        except (OSError, ValueError):
            self._file = None  # an older kernel, or not ours to read
        return 0
