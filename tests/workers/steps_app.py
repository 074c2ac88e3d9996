"""Tasks with durable steps and long loops, for the tests of the worker process."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import date
from typing import Any

from rqueue.tasks import context
from rqueue.tasks.decorator import task
from rqueue.tasks.retry import RetryPolicy
from tests.workers.child_app import agate, gate, say


def _charge(key: str) -> dict[str, int]:
    say(key, "charged")
    return {"number": 7}


async def _acharge(key: str) -> dict[str, int]:
    return _charge(key)


@task(name="c.order")
def order(key: str) -> dict[str, Any]:
    """A step, a wait, and what the step returned."""
    job = context.current_job()
    assert job is not None
    charge = job.step("charge", _charge, key)
    gate.function(key)
    return {"charge": charge, "again": job.step("last", dict), "key": job.step_key("charge")}


@task(name="c.aorder")
async def aorder(key: str) -> dict[str, int]:
    job = context.current_job()
    assert job is not None
    charge = await job.astep("charge", _acharge, key)
    await agate.function(key)
    return charge


@task(name="c.loop")
def loop(key: str, rows: int) -> str:
    """Says each row, and waits after the third one."""
    job = context.current_job()
    assert job is not None

    def after(position: int | None) -> Any:
        return ((row, row) for row in range((position or 0) + 1, rows + 1))

    for row in job.iterate(after):
        say(key, row)
        if row == 3 and job.delivery == 1:
            say(key, "third")
            while not job.stopping:
                threading.Event().wait(0.005)
    return "over"


@task(name="c.aloop")
async def aloop(key: str, rows: int) -> str:
    job = context.current_job()
    assert job is not None

    async def after(position: int | None) -> Any:
        for row in range((position or 0) + 1, rows + 1):
            yield row, row

    async for row in job.aiterate(after):
        say(key, row)
        if row == 3 and job.delivery == 1:
            say(key, "third")
            while not job.stopping:
                await asyncio.sleep(0.005)
    return "over"


@task(name="c.too_much")
def too_much(how: str) -> None:
    job = context.current_job()
    assert job is not None
    if how == "twice":
        job.step("a", int)
        job.step("a", int)
    elif how == "many":
        for number in range(1002):
            job.step(f"s{number}", int)
            say(f"{job.id}:many", number)
    elif how == "position":
        for _ in job.iterate(lambda _: [(object(), 1)]):
            say(f"{job.id}:row", 1)
    elif how == "large":
        job.step("a", "x".__mul__, 70_000)
    elif how == "all":
        for number in range(10):
            job.step(f"s{number}", "x".__mul__, 60_000)
    else:
        job.step("a", object)


def _rows(position: tuple[int, date] | None) -> Iterator[Any]:
    for row in range(8):
        at = (row, date(2030, 1, row + 1))
        if position is None or at > position:
            yield at, row


def _turn(key: str, bad: dict[int, int], row: int) -> None:
    """A row, which fails as often as `bad` says."""
    job = context.current_job()
    assert job is not None
    if job.attempts < sum(times for at, times in bad.items() if at <= row):
        raise ValueError(row)
    say(key, row)


@task(name="c.failing_loop", retry=RetryPolicy(delay=0, jitter=0))
def failing_loop(key: str, bad: dict[str, int]) -> str:
    job = context.current_job()
    assert job is not None
    known = {int(row): times for row, times in bad.items()}
    for row in job.iterate(_rows):
        _turn(key, known, row)
    return "over"


@task(name="c.failing_aloop", retry=RetryPolicy(delay=0, jitter=0))
async def failing_aloop(key: str, bad: dict[str, int]) -> str:
    job = context.current_job()
    assert job is not None
    known = {int(row): times for row, times in bad.items()}

    async def after(position: Any) -> Any:
        for pair in _rows(position):
            yield pair

    async for row in job.aiterate(after):
        _turn(key, known, row)
    return "over"


@task(name="c.zombie")
def zombie(key: str) -> None:
    """Goes on when it is cancelled, and tries to keep a step then."""
    gate.function(key)
    job = context.current_job()
    assert job is not None
    try:
        job.step("late", int)
    except BaseException as error:
        say(key, type(error).__name__)
        raise
