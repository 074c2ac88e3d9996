"""The command line: `rqueue`, or `python -m rqueue.cli`."""

from rqueue.cli.root import cli, main

__all__ = ["cli", "main"]
