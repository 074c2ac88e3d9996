"""The pool of workers of a demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rqueue.errors import RQueueError

STOP_S = 30.0


@dataclass(frozen=True)
class Pool:
    """A pool that runs, and the file with what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise RQueueError if it ended by itself, with what it said."""
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace").strip()
            raise RQueueError(f"the pool ended with {self.process.returncode}: {said[-1000:]}")


@contextmanager
def running_pool(
    url: str,
    app: str,
    queues: Sequence[str],
    log: Path,
    *,
    processes: int = 2,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Pool]:
    """A pool as an operator would start it, in a process group of its own, and ended with the
    block. variables: more of its environment."""
    command = [sys.executable, "-m", "rqueue.cli", "worker", app, *queues]
    command += ["--processes", str(processes)]
    environment = {**os.environ, "RQUEUE_URL": url, **(variables or {})}
    with log.open("wb") as output:
        pool = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            yield Pool(pool, log)
        finally:
            pool.terminate()
            try:
                pool.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(pool.pid, signal.SIGKILL)
                pool.wait()
