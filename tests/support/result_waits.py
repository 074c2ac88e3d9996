"""A wait for a result with a client of its own: sync and asyncio."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue

Waits = Callable[[str, str, str, float | None], Any]


def _sync(url: str, queue: str, id_: str, timeout: float | None) -> Any:
    with Queue(queue, url) as own:
        return own.job(id_).result(timeout)


def _asyncio(url: str, queue: str, id_: str, timeout: float | None) -> Any:
    async def wait() -> Any:
        async with AsyncQueue(queue, url) as own:
            return await own.job(id_).result(timeout)

    return asyncio.run(wait())


WAITS = [pytest.param(_sync, id="sync"), pytest.param(_asyncio, id="asyncio")]

LONGER_THAN_A_CALL_TRIES_S = 1.5
