"""Tasks with durable steps and long loops, for the tests of the worker process."""

import asyncio
import threading
from typing import Any

from rqueue.tasks import context
from rqueue.tasks.decorator import task
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


@task(name="c.too_much", max_deliveries=1)
def too_much(how: str) -> None:
    job = context.current_job()
    assert job is not None
    if how == "twice":
        job.step("a", int)
        job.step("a", int)
    elif how == "large":
        job.step("a", "x".__mul__, 70_000)
    elif how == "all":
        for number in range(10):
            job.step(f"s{number}", "x".__mul__, 60_000)
    else:
        job.step("a", object)


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
