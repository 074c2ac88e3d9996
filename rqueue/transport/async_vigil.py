"""Waits for a server that gives no answer, for asyncio: `rqueue.transport.vigil` is the same for
threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any

from rqueue.protocol.slots import Address
from rqueue.transport.resp import QUIET_S
from rqueue.transport.sentinel import aprimary_named
from rqueue.transport.vigil import (
    AGAIN_S,
    HURRIED_S,
    UNKNOWN,
    Replaced,
    Wait,
    moving_name,
)

__all__ = ["AsyncVigil", "async_vigil_of", "watch"]

AsyncInCharge = Callable[[Collection[Address]], Awaitable[Collection[Address] | None]]
"""As `rqueue.transport.vigil.InCharge`."""

_KEPT = "_rqueue_vigil"


class AsyncVigil:
    """Of one client, for the tasks of one event loop. A task of its own asks while others wait."""

    def __init__(self, in_charge: AsyncInCharge, *, of_name: bool = False) -> None:
        self._in_charge = in_charge
        self.of_name = of_name
        """Whether servers are named apart by where a name leads."""
        self._waits: list[Wait] = []
        self._task: asyncio.Task[None] | None = None
        self._begun = 0.0
        """When the last question began, by monotonic time."""

    def enter(self, wait: Wait) -> None:
        """Begin to ask for the sake of this wait."""
        self._waits.append(wait)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._ask())

    def leave(self, wait: Wait) -> None:
        """The wait is over."""
        self._waits.remove(wait)
        if not self._waits and self._task is not None:
            self._task.cancel()

    async def doubt(self, wait: Wait) -> None:
        """An answer is there that came late: wait until it is known whether its server is still in
        charge, as far as others can be asked."""
        while not wait.over:
            named = await self._answer()
            if named is not None:
                self._end(named)
                return
            await asyncio.sleep(HURRIED_S)

    async def _ask(self) -> None:
        while self._waits:
            await asyncio.sleep(max(0.0, self._begun + AGAIN_S - monotonic()))
            self._begun = monotonic()
            self._end(await self._answer() or ())

    async def _answer(self) -> Collection[Address] | None:
        try:
            return await self._in_charge({wait.address for wait in self._waits})
        except UNKNOWN:
            return ()

    def _end(self, named: Collection[Address]) -> None:
        for wait in self._waits if named else ():
            if wait.address not in named and not wait.over:
                wait.over = True
                wait.end()


@asynccontextmanager
async def watch(
    vigil: Callable[[], AsyncVigil], connection: Any, seconds: float | None, *, due: bool
) -> AsyncIterator[None]:
    """Waits inside for so many seconds, and from `QUIET_S` on until another server is in charge.

    - vigil: asked for when it is needed.
    - connection: of redis-py.
    - due: the server owes its answer at once, so that of one which was replaced counts for nothing.

    Raises TimeoutError, and Replaced.
    """
    wait: Wait | None = None
    loop = asyncio.get_running_loop()

    def late() -> None:
        nonlocal wait
        asked = vigil()
        if not connection.is_connected:
            handles.append(loop.call_later(HURRIED_S, late))
        elif due or not asked.of_name:  # a resolver is not asked again and again for nothing
            wait = Wait(_place_of(connection, of_name=asked.of_name), hang_up)
            asked.enter(wait)

    def hang_up() -> None:
        with suppress(RuntimeError):  # the wait ends just now
            limit.reschedule(loop.time())

    handles = [loop.call_later(QUIET_S, late)]
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
            if wait is not None and due:
                await vigil().doubt(wait)
    except TimeoutError:
        if wait is None or not wait.over:
            raise
    finally:
        handles[-1].cancel()
        if wait is not None:
            vigil().leave(wait)
    if wait is not None and wait.over:
        raise Replaced(wait.address, wait.waited)


def _place_of(inner: Any, *, of_name: bool) -> Address:
    if of_name:
        return Address(*inner._writer.get_extra_info("peername")[:2])
    return Address(inner.host, int(inner.port))


def async_vigil_of(client: Any) -> AsyncVigil:
    """As `rqueue.transport.vigil.vigil_of`; not of a cluster, which has its own."""
    kept: AsyncVigil | None = vars(client).get(_KEPT)
    if kept is None:
        kept = vars(client)[_KEPT] = _made_for(client)
    return kept


def _made_for(client: Any) -> AsyncVigil:
    pool = client.connection_pool
    if hasattr(pool, "sentinel_manager"):
        return AsyncVigil(partial(aprimary_named, pool))
    name = moving_name(pool)
    assert name is not None
    return AsyncVigil(partial(_resolved, *name), of_name=True)


async def _resolved(host: str, port: int, _silent: Collection[Address]) -> Collection[Address]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port)
    return {Address(str(at[0]), int(at[1])) for *_, at in found}
