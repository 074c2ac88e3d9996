"""The archiver of the demo: `rqueue pipeline archive`, as an operator would start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rqueue.errors import RQueueError

__all__ = ["Archiver"]

STOP_S = 120.0
QUICK_START = "-XX:TieredStopAtLevel=1"
"""For Java: compile fast rather than well, which is right for what ends in a minute."""

Listener = Callable[[dict[str, Any]], None]


class Archiver:
    """The process; a listener gets its messages, from a thread. `batches`: how many that brought
    rows it has finished."""

    def __init__(self, url: str, lake: Path, log: Path, listener: Listener) -> None:
        command = [sys.executable, "-m", "rqueue.cli", "pipeline", "archive", "--lake", str(lake)]
        command += ["--interval", "1s", "--json", "--master", "local[2]"]
        command += ["--conf", "spark.sql.shuffle.partitions=2"]
        command += ["--conf", f"spark.driver.extraJavaOptions={QUICK_START}"]
        self.batches = 0
        self.changed = threading.Event()
        self._log = log
        self._listener = listener
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "RQUEUE_URL": url},
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._read, name="archiver", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self.batches += said["event"] == "batch"
            self._listener(said)
            self.changed.set()
        self.changed.set()

    def check(self) -> None:
        """Raise RQueueError if it ended by itself, with what it said."""
        if self._process.poll() is not None:
            said = self._log.read_text(errors="replace").strip()
            raise RQueueError(f"the archiver ended with {self._process.returncode}: {said[-1000:]}")

    def kill(self) -> None:
        """SIGKILL, and nothing else."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Let it finish its batch and end; SIGKILL if it takes too long."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._thread.join(5)
