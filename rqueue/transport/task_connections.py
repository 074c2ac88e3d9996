"""The asyncio client's script calls, over connections that the tasks of one event loop share.

A call takes a free connection, or opens one, and returns it. `CALLS_MAX` calls are under way at
once, the others take turns: to open connections for a burst costs much more than the calls do. A
batch under way and a wait, for a result or a confirmation, keep theirs meanwhile, and take no turn.
A call whose connection broke is sent again a few times, see `repeats`.
`rqueue.transport.thread_connections` is the same for threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from redis import exceptions as rx

from rqueue.errors import ServerError
from rqueue.model.confirmation import Confirmation
from rqueue.model.connection_state import ConnectionStates
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.commands.commit import after_repeat
from rqueue.protocol.commands.server import server_info
from rqueue.protocol.repeats import Repeats
from rqueue.transport import stand_in
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.home_loop import HomeLoop
from rqueue.transport.redis_client import is_cluster, url_of
from rqueue.transport.server_check import ServerFacts, afirst_look, aserver_facts, read_facts

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")
T = TypeVar("T")

FREE_MAX = 100
"""Connections that are kept open while no call needs them."""

CALLS_MAX = 16
"""Calls that are under way at once, while Redis answers in time."""

TURN_S = 1.0
"""How long a call waits for its turn at the most: those before it may wait for a server that does
not answer, and its own time has to begin."""


class AsyncFlight(NamedTuple, Generic[R]):
    """A call under way. Its connection carries nothing else until `TaskConnections.finish`."""

    call: ScriptCall[R]
    connection: AsyncConnection | None
    closes: int
    """How often the connections had been closed when the call began."""
    lost: ServerError | None = None
    """The error with which sending failed: then there is no connection."""


class TaskConnections:
    """Connections made like those of `client`; of one event loop.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.asyncio.Redis, timeout: float | None) -> None:
        self.states = ConnectionStates()
        self._client = client
        self.patience = timeout
        """Seconds that a reply may take; None: for ever."""
        self._confirmable: set[Confirmation] = set()
        self._free: list[AsyncConnection] = []
        self._closes = 0
        """How often they were closed: a call that began before keeps no connection open behind it,
        be it one that it had already or one that it opens when its turn has come."""
        self._turns = asyncio.Semaphore(CALLS_MAX)
        self._home = HomeLoop()

    async def run(self, call: ScriptCall[R], *, queue: str, consumer: str = "") -> R:
        """Run a call and read its reply. Raises the tree of `rqueue.errors`."""
        return await self._tried(
            lambda connection: connection.run(call, queue=queue, consumer=consumer),
            call.key,
            turn=call.confirm is None,
        )

    async def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str
    ) -> tuple[R, Any]:
        """Send a call and, in the same packet, a command that blocks until what the call prepared
        happens. Returns both replies. The command must block for less than `patience`. Nothing is
        repeated: after a failure the time left is another. Raises the tree of `rqueue.errors`."""
        self._home.enter()
        closes = self._closes
        connection = self._take(call.key)
        try:
            return await connection.run_then(call, command, queue=queue)
        finally:
            self._return(connection, closes)

    async def begin(self, call: ScriptCall[R]) -> AsyncFlight[R]:
        """Send a call and do not wait: `finish` has the reply. Where that fails, `finish` repeats
        the call."""
        self._home.enter()
        closes = self._closes
        connection = self._take(call.key)
        try:
            await connection.begin(call)
        except ServerError as error:
            self._return(connection, closes)
            return AsyncFlight(call, None, closes, error)
        except BaseException:
            self._return(connection, closes)
            raise
        return AsyncFlight(call, connection, closes)

    async def finish(self, flight: AsyncFlight[R], *, queue: str) -> R:
        """The reply of a call that was begun. Raises the tree of `rqueue.errors`."""
        call, connection, closes, lost = flight
        repeats = Repeats(self.patience)
        if connection is None:
            assert lost is not None
            await asyncio.sleep(repeats.pause(lost))
        else:
            try:
                answer = await connection.finish(call, queue=queue)
            except ServerError as error:
                self.states.fails(error)
                repeats.pause(error)  # raises what is not to be sent again
            else:
                await self._worked(call.key)
                return answer
            finally:
                self._return(connection, closes)
        turn = call.confirm is None
        return await self._tried(
            lambda connection: connection.run(call, queue=queue), call.key, repeats, turn, closes
        )

    def drop(self, flight: AsyncFlight[Any]) -> None:
        """Nobody reads the reply of a call that was begun."""
        if flight.connection is not None:
            flight.connection.abort()

    def server_of(self, _key: str) -> Hashable:
        """What is one for all queues whose calls one server answers. key: a queue's meta key."""
        return id(self)

    async def _worked(self, key: str) -> None:
        if not self.states.reached:
            self.states.works()
            await afirst_look(url_of(self._client), partial(self.facts, key))
        if stand_in.behind_call is not None:
            stand_in.behind_call()

    async def _tried(
        self,
        action: Callable[[AsyncConnection], Awaitable[T]],
        key: str,
        repeats: Repeats | None = None,
        turn: bool = True,
        closes: int | None = None,
    ) -> T:
        self._home.enter()
        closes = self._closes if closes is None else closes
        while True:
            try:
                async with self._turn(self._turns_of(key)) if turn else nullcontext():
                    until = None if repeats is None else repeats.until
                    answer = await self._alone(action, key, closes, until)
            except ServerError as error:
                self.states.fails(error)
                repeats = repeats or Repeats(self.patience)
                pause = repeats.pause(error)
            else:
                if stand_in.behind_call is not None or not self.states.reached:
                    await self._worked(key)
                return answer if repeats is None else after_repeat(answer)
            if pause:
                await asyncio.sleep(pause)

    async def _alone(
        self,
        action: Callable[[AsyncConnection], Awaitable[T]],
        key: str,
        closes: int,
        until: float | None,
    ) -> T:
        connection = self._take(key)
        connection.until = until
        try:
            return await action(connection)
        finally:
            connection.until = None
            self._return(connection, closes)

    @staticmethod
    @asynccontextmanager
    async def _turn(turns: asyncio.Semaphore) -> AsyncIterator[None]:
        """Wait for a turn, `TURN_S` at the most."""
        if not turns.locked():
            await turns.acquire()
        else:
            try:
                async with asyncio.timeout(TURN_S):
                    await turns.acquire()
            except TimeoutError:
                yield
                return
        try:
            yield
        finally:
            turns.release()

    def confirmable(self, _key: str) -> set[Confirmation]:
        """What the server of a queue can confirm, as far as that was asked. key: the queue's meta
        key."""
        return self._confirmable

    async def facts(self, _key: str) -> ServerFacts:
        """What the server of a queue says of itself. Raises the tree of `rqueue.errors`."""
        self._home.enter()
        if stand_in.name_of():
            return await aserver_facts(self._client)
        closes = self._closes
        connection = self._take(_key)
        try:
            return await self._facts(connection)
        finally:
            self._return(connection, closes)

    @staticmethod
    async def _facts(connection: AsyncConnection) -> ServerFacts:
        try:
            said = await connection.command("INFO")
        except rx.ResponseError as error:
            raise connection.meant(error) from error
        return read_facts(server_info().read([said]), connection.url)

    def _turns_of(self, _key: str) -> asyncio.Semaphore:
        """Whose turn it is at the server of a queue."""
        return self._turns

    def _take(self, _key: str) -> AsyncConnection:
        return self._free.pop() if self._free else AsyncConnection(self._client, self.patience)

    def _return(self, connection: AsyncConnection, closes: int) -> None:
        """closes: how often they had been closed when the call began."""
        if len(self._free) < FREE_MAX and closes == self._closes:
            self._free.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close the connections that no call uses, and later those of the calls that have begun;
        the next call opens a new one, in whatever loop it is made."""
        self._closes += 1
        free, self._free = self._free, []
        await self._close_all(free)
        self._turns = asyncio.Semaphore(CALLS_MAX)

    async def _close_all(self, connections: list[AsyncConnection]) -> None:
        if not self._home.ended:
            for connection in connections:
                await connection.close()
        self._home.leave()

    async def close_client(self) -> None:
        """Close the connections that redis-py keeps. Those of a loop that has ended are gone."""
        if self._home.ended and not is_cluster(self._client):
            self._client.connection_pool.reset()
        else:
            await self._client.aclose()
