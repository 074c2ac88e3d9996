"""The tasks that rqueue's workers run in the benchmarks."""

from __future__ import annotations

import asyncio
import time

from benchmarks.apps import board
from rqueue.tasks.decorator import task

task(name="hit")(board.hit)
task(name="record")(board.record)


@task(name="weigh")
def weigh(payload: str) -> None:
    """A job with a payload."""
    board.hit()


@task(name="doze")
def doze(seconds: float) -> None:
    """Sleep, and say how long it took."""
    board.timed(seconds)


@task(name="stamp")
def stamp(number: int) -> None:
    """Leave marks and be done."""
    board.started(number)
    board.ended(number)


@task(name="echo")
def echo(value: int) -> int:
    """Give the argument back."""
    return value


@task(name="add")
def add(a: int, b: int) -> int:
    """The first job of the README."""
    return a + b


@task(name="work")
def work(number: int, seconds: float) -> None:
    """Sleep between the marks."""
    board.started(number)
    time.sleep(seconds)
    board.ended(number)


@task(name="spin")
def spin(number: int, seconds: float) -> None:
    """Compute between the marks: unlike a sleep it takes as long as it says."""
    begin = board.started(number)
    end = begin + int(1e9 * seconds)
    while time.monotonic_ns() < end:
        pass
    board.ended(number)


@task(name="adoze")
async def adoze(number: int, seconds: float) -> None:
    """Sleep on the event loop."""
    board.started(number)
    await asyncio.sleep(seconds)
    board.ended(number)
