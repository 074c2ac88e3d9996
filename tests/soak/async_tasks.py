"""The same tasks, and one for an event loop: a pool with this module has async slots as well."""

from __future__ import annotations

import asyncio

from rqueue import task
from tests.soak.tasks import AGAIN, finish, note


@task(name="soak.astep", queue="main", retry=AGAIN)
async def astep(publisher: str, number: int, seconds: float, how: str = "") -> str:
    """Begin, wait a while, end as asked."""
    note("begin", publisher, number)
    await asyncio.sleep(seconds)
    finish(publisher, number, how)
    return f"{publisher}/{number}"
