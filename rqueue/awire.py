"""One raw asyncio connection to Redis for the protocol: no pool, no hidden retry; see `wire`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from redis import exceptions as rx
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from rqueue import scripts
from rqueue.connection import translate, url_of
from rqueue.store.call import Arg, Call

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")


class AsyncWire:
    """A connection made like those of `client` (same address, login, TLS), of one event loop.

    Tasks take turns on it. A task that is cancelled while its command is under way breaks the
    connection, and the next command opens a new one: whether it ran is not known then.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.asyncio.Redis, timeout: float | None = 15.0) -> None:
        self.url = url_of(client)
        pool = client.connection_pool
        kwargs = dict(pool.connection_kwargs)
        kwargs.update(
            socket_timeout=None,  # ours: redis-py's may swallow a cancellation before Python 3.12
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            decode_responses=False,
        )
        kwargs.pop("retry_on_error", None)
        kwargs.pop("retry_on_timeout", None)
        self._timeout = timeout
        self._connection: Any = pool.connection_class(**kwargs)
        self._turn = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether there is a connection (it may be dead and not know)."""
        return bool(self._connection.is_connected)

    async def close(self) -> None:
        """Drop the connection; the next command opens a new one."""
        await self._connection.disconnect()

    def abort(self) -> None:
        """Drop the connection now, without awaiting anything."""
        self._connection._close()

    async def send(self, *command: Arg) -> None:
        """Send one command and do not wait. Raises the tree of `rqueue.errors`."""
        connection = self._connection
        try:
            async with asyncio.timeout(self._timeout):
                if not connection.is_connected:
                    await connection.connect()
                await connection.send_packed_command(
                    connection.pack_command(*command), check_health=False
                )
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error) from error

    async def read(self) -> Any:
        """Read one reply; an error reply raises redis-py's ResponseError."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._connection.read_response()
        except rx.ResponseError:
            raise
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error) from error

    async def command(self, *command: Arg) -> Any:
        """Send one command and read its reply."""
        await self.send(*command)
        return await self.read()

    async def run(self, call: Call[R], *, queue: str = "", consumer: str = "") -> R:
        """Run a script call; a server that forgot the script is taught it (restart, flush)."""
        script = scripts.script(call.script)
        try:
            async with self._turn:
                try:
                    reply = await self.command("EVALSHA", script.sha, 2, *call.keys, *call.args)
                except rx.NoScriptError:
                    reply = await self.command("EVAL", script.source, 2, *call.keys, *call.args)
        except rx.ResponseError as error:
            if (place := script.locate(str(error))) is not None:
                error.add_note(f"at {place}")
            raise translate(
                error, url=self.url, script=call.script, queue=queue, consumer=consumer
            ) from error
        return call.read(reply)

    async def _broken(self, error: Exception) -> Exception:
        # a reply may still be on its way: this connection must not be used again
        await self._connection.disconnect(nowait=True)
        return translate(error, url=self.url)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended.

    Said again where one cancellation was swallowed: asyncio.wait_for does so before Python 3.12,
    when what it waits for is ready at the same moment.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.2)
