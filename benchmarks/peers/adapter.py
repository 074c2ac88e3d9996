"""An adapter is a program in its peer's environment. Standard library alone.

`python -m benchmarks.peers.adapters.<name> fill hit 1000` enqueues 1000 jobs of a task, and
`... work 2` becomes a worker with two processes. The server's address and the board are in the
environment. Tasks, the same for everybody: `hit` (nothing but being counted), `record` (a record
of 64 bytes written to a file), `weigh <bytes>` (nothing again, with a payload), `work <seconds>`
(numbered jobs that sleep between two marks).
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.apps import board

URL = os.environ.get("BENCH_URL", "")

Enqueue = Callable[[str, list[tuple[Any, ...]]], None]
Worker = Callable[[int], list[list[str]]]

CONCURRENCY = 32
"""Of the asyncio peers (taskiq, SAQ, arq, streaq): what streaq's own comparison of these four uses
for all of them (its benchmarks/README.md)."""


def hit() -> None:
    """A no-op job."""
    board.hit()


def record() -> None:
    """A job that writes a record of 64 bytes to a file."""
    board.record()


def weigh(payload: str) -> None:
    """The same with a payload."""
    board.hit()


def work(number: int, seconds: float) -> None:
    """A job that takes its time."""
    board.started(number)
    time.sleep(seconds)
    board.ended(number)


async def ahit() -> None:
    """A no-op job."""
    board.hit()


async def arecord() -> None:
    """A job that writes a record of 64 bytes to a file."""
    board.record()


async def aweigh(payload: str) -> None:
    """The same with a payload."""
    board.hit()


async def awork(number: int, seconds: float) -> None:
    """A job that takes its time."""
    board.started(number)
    await asyncio.sleep(seconds)
    board.ended(number)


def program(name: str, *arguments: str) -> list[str]:
    """A program of this environment, by its file name."""
    return [os.path.join(os.path.dirname(sys.executable), name), *arguments]


def main(enqueue: Enqueue, worker: Worker) -> None:
    """Run an adapter."""
    verb, *rest = sys.argv[1:]
    if verb == "fill":
        enqueue(rest[0], list(_arguments(*rest)))
        return
    commands = worker(int(rest[0]))
    if len(commands) == 1:
        os.execv(commands[0][0], commands[0])
    programs = [subprocess.Popen(command) for command in commands]

    def end(number: int, _frame: object) -> None:
        for one in programs:
            one.send_signal(number)

    signal.signal(signal.SIGTERM, end)
    for one in programs:
        one.wait()


def _arguments(task: str, count: str, extra: str = "") -> Iterable[tuple[Any, ...]]:
    for number in range(int(count)):
        if task == "weigh":
            yield ("x" * int(extra),)
        elif task == "work":
            yield number, float(extra)
        else:
            yield ()


async def in_chunks(
    send: Callable[..., Any], arguments: list[tuple[Any, ...]], size: int = 200
) -> None:
    """Await many calls, some hundred at once."""
    for first in range(0, len(arguments), size):
        await asyncio.gather(*(send(*args) for args in arguments[first : first + size]))
