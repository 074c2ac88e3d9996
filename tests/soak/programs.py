"""The programs of a soak, kept running: pools, producers, consumers.

What ends is started again, as an operator's init system would; when each life began and ended, and
with which code, is a record.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from tests.soak.records import FOLDER, LIFE, Recorder
from tests.support.forked_program import ForkedProgram

ROOT = Path(__file__).resolve().parents[2]
MARK = "SOAK_RUN"
"""A variable that all processes of one run have in their environment: how what is left is found."""

Kind = Literal["pool", "producer", "consumer", "relay"]
LOOK_S = 0.05
PAUSE_S = 0.2
"""Seconds between the end of a life and the next one."""


class Program:
    """One program, whatever process it is just now: a pool as an operator starts it, all others
    with rqueue loaded, since it is what they do that counts."""

    def __init__(
        self,
        kind: Kind,
        name: str,
        module: str,
        arguments: Sequence[str],
        run: Run,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self._module = module
        self._arguments = list(arguments)
        self._run = run
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | ForkedProgram | None = None
        self._again_at = 0.0
        self._lives = 0
        self.wanted = True

    @property
    def pid(self) -> int:
        """The process that runs now; 0: none."""
        return self._process.pid if self._process is not None else 0

    @property
    def log(self) -> Path:
        """Where all its lives write."""
        return self._run.folder / f"{self.name}.log"

    def start(self) -> None:
        """Begin a life."""
        self._lives += 1
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'workers'}",
            FOLDER: str(self._run.records),
            MARK: self._run.id,
            LIFE: str(self._lives),
            **self._environment,
        }
        with self.log.open("ab") as out:
            if self.kind == "pool":
                self._process = subprocess.Popen(
                    [sys.executable, "-m", self._module, *self._arguments],
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            else:
                self._process = ForkedProgram(
                    self._module, *self._arguments, output=out, environment=environment
                )
        self._run.recorder.write(
            "started", kind=self.kind, program=self.name, process=self.pid, life=self._lives
        )

    def look(self) -> None:
        """Note its end, and start it again when it is time."""
        if self._process is not None:
            code = self._process.poll()
            if code is not None:
                self._run.recorder.write(
                    "ended", kind=self.kind, program=self.name, process=self.pid, code=code
                )
                self._process = None
                self._again_at = time.monotonic() + PAUSE_S
        elif self.wanted and time.monotonic() >= self._again_at:
            self.start()

    def end(self) -> None:
        """Leave no process of it behind."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def note_closing(self) -> None:
        """Put on record that the soak ends its life, in good order."""
        self._run.recorder.write("closing", program=self.name, process=self.pid)

    def children(self) -> list[int]:
        """The worker processes, of a pool."""
        return children(self.pid)


class Run:
    """One soak's folder, id and records."""

    def __init__(self, folder: Path, id: str) -> None:
        self.folder = folder
        self.id = id
        self.records = folder / "records"
        self.records.mkdir()
        self.recorder = Recorder(self.records, "soak")

    def processes(self) -> list[int]:
        """All processes of this run that are there, zombies and programs that were forked apart;
        this one is not among them."""
        needle = f"{MARK}={self.id}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    if needle in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found


class Keeper:
    """Keeps programs running, in a thread, until `end`."""

    def __init__(self, programs: Iterable[Program]) -> None:
        self.programs = list(programs)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name="keeper", daemon=True)

    def start(self) -> None:
        """Start all programs."""
        for program in self.programs:
            program.start()
        self._thread.start()

    def add(self, program: Program) -> None:
        """Start one more."""
        program.start()
        with self._lock:
            self.programs.append(program)

    def of(self, kind: Kind) -> list[Program]:
        """The programs of a kind."""
        return [program for program in self.programs if program.kind == kind]

    def end(self, kind: Kind, seconds: float, *names: str) -> list[str]:
        """End the programs of a kind, or some of them, in good order; names of those that had to be
        killed."""
        programs = [its for its in self.of(kind) if not names or its.name in names]
        for program in programs:
            program.wanted = False
        for program in programs:
            if pid := program.pid:
                program.note_closing()
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + seconds
        while any(program.pid for program in programs) and time.monotonic() < until:
            self._over.wait(LOOK_S)
        late = [program for program in programs if program.pid]
        for program in late:
            for pid in (program.pid, *program.children()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return [program.name for program in late]

    def stop(self) -> None:
        """Look after nothing any more."""
        self._over.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._over.wait(LOOK_S):
            with self._lock:
                programs = list(self.programs)
            for program in programs:
                program.look()


def children(pid: int) -> list[int]:
    """The child processes of a process; none where it is gone."""
    try:
        said = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in said.split()]
