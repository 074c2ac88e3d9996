"""Pools as an operator starts them, each a process group of its own."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.forked_program import PATH, ForkedProgram


def start_pool(log: Path, url: str, *arguments: str, **environment: str) -> ForkedProgram:
    """`rqueue worker` with these arguments and two processes; `log` is where it writes."""
    with log.open("wb") as output:
        return ForkedProgram(
            "rqueue.cli",
            *("worker", *arguments, "--processes", "2"),
            output=output,
            environment={**os.environ, "RQUEUE_URL": url, "PYTHONPATH": PATH, **environment},
            leads=True,
        )
