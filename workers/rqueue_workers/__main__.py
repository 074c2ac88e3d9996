"""`python -m rqueue_workers` does what `rqueue worker` does."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run a pool and exit with its code."""
    # what asks it to end while it is still being imported finds nothing begun
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, lambda *_: os._exit(0))
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, lambda *_: None)
    from rqueue.cli import main as cli

    cli(["worker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
