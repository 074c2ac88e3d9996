"""Processes of the bench: started in a group of their own, ended with all their children.

Not in a session of their own: Linux gives each session its share of a core (autogroup), and a pool
of many processes is not to be set back against a program of one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from benchmarks.apps import board

ROOT = Path(__file__).resolve().parents[2]


def start(
    command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Begin a program in the project's folder, with nothing else in its environment."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


class Program:
    """A running program. Its output goes to a file, the end of which tells why it died."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command = list(command)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RQUEUE"))}
        self.process = start(
            self.command, {**inherited, "PYTHONPATH": str(ROOT), **environment}, self._log
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def said(self, size: int = 2000) -> str:
        """The end of its output."""
        self._log.flush()
        end = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, max(0, end - size)).decode(errors="replace")

    def check(self) -> None:
        """Raise if it ended."""
        if not self.alive:
            raise Died(self.command, self.process.returncode, self.said())

    def kill(self) -> None:
        """End it and all that descend from it at once, as a power cut would: the supervisor first,
        so that none is left to take note. Workers may have process groups of their own."""
        for pid in children(self.process.pid) if self.alive else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = 10.0) -> None:
        """Ask it to end, then make it."""
        if self.alive:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        self.kill()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Died(Exception):
    """A program that is needed ended."""

    def __init__(self, command: Sequence[str], code: int, said: str) -> None:
        last = "\n".join(said.strip().splitlines()[-6:])
        super().__init__(f"{' '.join(command[1:5])} ended with exit code {code}: {last}")


def rqueue_pool(
    url: str, path: Path, queue: str, processes: int, *options: str, app: str = "tasks"
) -> Program:
    """`rqueue worker` on one queue, as users start it."""
    command = [
        *(sys.executable, "-m", "rqueue.cli", "worker", f"benchmarks.apps.{app}", queue),
        *("--processes", str(processes), "--quiet", *options),
    ]
    workers = f"{ROOT}{os.pathsep}{ROOT / 'workers'}"
    return Program(command, {"RQUEUE_URL": url, board.VARIABLE: str(path), "PYTHONPATH": workers})


def module(name: str, arguments: Sequence[str], path: Path) -> Program:
    """A module of the benchmarks, as a program."""
    command = [sys.executable, "-m", name, *arguments]
    workers = f"{ROOT}{os.pathsep}{ROOT / 'workers'}"
    return Program(command, {board.VARIABLE: str(path), "PYTHONPATH": workers})


def children(pid: int) -> list[int]:
    """A process and all that descend from it (Linux: from /proc)."""
    found, look = [pid], [pid]
    while look:
        try:
            tasks = Path(f"/proc/{look[0]}/task").iterdir()
            mine = [int(c) for t in tasks for c in (t / "children").read_text().split()]
        except OSError:
            mine = []
        look = look[1:] + mine
        found += mine
    return found


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU that these processes have used (Linux)."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
