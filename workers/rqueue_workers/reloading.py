"""`rqueue worker --reload`, for development: a process beside the pool watches Python files, and
asks for a rolling restart when one of them changes.

It is a process of its own because the supervisor forks, and so has no threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["reloading"]

LOOK_MS = 500
"""How often it looks whether the pool is still there."""

SETTLE_MS = 100
"""Changes that follow each other sooner than that are one: editors write a file in steps."""


@contextmanager
def reloading(folder: str = ".") -> Iterator[None]:
    """While the block runs, this process gets SIGHUP when a Python file below `folder` changes."""
    command = [sys.executable, "-m", __name__, str(os.getpid()), folder]
    # not of this session: Ctrl-C is for the pool
    watcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        watcher.terminate()
        watcher.wait()


def watch_for(pool: int, folder: str) -> None:
    """Send SIGHUP to the process `pool`, our parent, at each change, as long as it lives."""
    from watchfiles import PythonFilter, watch

    said = False
    for changes in watch(
        folder,
        watch_filter=PythonFilter(),
        step=SETTLE_MS,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
    ):
        if os.getppid() != pool:
            return
        if not said:
            said = True
            _say(f"{os.path.abspath(folder)} is watched: the pool reloads when a file changes")
        if changes:
            names = sorted({os.path.relpath(path, folder) for _, path in changes})
            _say(f"{', '.join(names)} changed: reloading")
            os.kill(pool, signal.SIGHUP)


def _say(line: str) -> None:
    print(f"rqueue: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    watch_for(int(sys.argv[1]), sys.argv[2])
