"""`python -m rqueue_workers` does what `rqueue worker` does."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a pool and exit with its code."""
    from rqueue.cli import main as cli

    cli(["worker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
