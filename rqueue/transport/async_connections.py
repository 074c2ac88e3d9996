"""The asyncio client's script calls, over connections of their own.

A call takes a free connection, or opens one, and returns it. A wait for a result keeps its
connection meanwhile. A call whose connection broke is sent again a few times, see `repeats`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rqueue.errors import ServerError
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.commands.enqueue import said_again
from rqueue.protocol.repeats import Repeats
from rqueue.transport.async_connection import AsyncConnection

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")
T = TypeVar("T")

FREE_MAX = 100
"""Connections that are kept open while nobody needs them."""


class AsyncConnections:
    """Connections like the connections of `client`; of one event loop.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.asyncio.Redis, timeout: float | None) -> None:
        self._client = client
        self.patience = timeout
        self._free: list[AsyncConnection] = []

    async def run(self, call: ScriptCall[R], *, queue: str) -> R:
        """Run a call and read its reply. Raises the tree of `rqueue.errors`."""
        return await self._tried(lambda connection: connection.run(call, queue=queue))

    async def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str
    ) -> tuple[R, Any]:
        """Run a call and a command that waits for what the call has announced: both replies. The
        command is to wait for less than `patience`. Nothing is repeated: after a failure another
        time is left to wait. Raises the tree of `rqueue.errors`."""
        connection = self._taken()
        try:
            return await connection.run_then(call, command, queue=queue)
        finally:
            self._give_back(connection)

    async def _tried(self, action: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        repeats = None
        while True:
            connection = self._taken()
            try:
                answer = await action(connection)
            except ServerError as error:
                repeats = repeats or Repeats()
                pause = repeats.pause(error)
            else:
                return answer if repeats is None else said_again(answer)
            finally:
                self._give_back(connection)
            if pause:
                await asyncio.sleep(pause)

    def _taken(self) -> AsyncConnection:
        return self._free.pop() if self._free else AsyncConnection(self._client, self.patience)

    def _give_back(self, connection: AsyncConnection) -> None:
        if len(self._free) < FREE_MAX:
            self._free.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close the connections that nobody uses; the next call opens a new one."""
        free, self._free = self._free, []
        for connection in free:
            await connection.close()
