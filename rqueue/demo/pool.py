"""The pool of workers of a demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

STOP_S = 30.0


@contextmanager
def running_pool(
    url: str,
    app: str,
    queues: Sequence[str],
    log: Path,
    *,
    processes: int = 2,
    variables: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
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
            yield pool
        finally:
            pool.terminate()
            try:
                pool.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(pool.pid, signal.SIGKILL)
                pool.wait()
