"""One raw asyncio connection to Redis for the protocol: no pool, no hidden retry.

`rqueue.transport.connection` is the same for threads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from redis import exceptions as rx
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from rqueue.protocol import scripts
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.error_mapping import moved_on, translate
from rqueue.transport.redis_client import url_of
from rqueue.transport.server_check import check_greeting, check_refusal

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")


class AsyncConnection:
    """A connection made like those of `client` (same address, login, TLS), of one event loop.

    Tasks take turns on it. A task that is cancelled while its command is under way breaks the
    connection, and the next command opens a new one: whether it ran is not known then.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.asyncio.Redis, timeout: float | None = 15.0) -> None:
        self._client = client
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
        self._inner: Any = pool.connection_class(**kwargs)
        self._turn = asyncio.Lock()

    @property
    def url(self) -> str:
        """Where it is connected to, for messages."""
        return url_of(self._client)

    @property
    def connected(self) -> bool:
        """Whether there is a connection (it may be dead and not know)."""
        return bool(self._inner.is_connected)

    async def close(self) -> None:
        """Drop the connection; the next command opens a new one."""
        await self._inner.disconnect()

    def abort(self) -> None:
        """Drop the connection now, without awaiting anything."""
        self._inner._close()

    async def connect(self) -> None:
        """Connect, log in and see who answers, if not connected. Raises the tree of
        `rqueue.errors`."""
        inner = self._inner
        if inner.is_connected:
            return
        try:
            async with asyncio.timeout(self._timeout):
                await inner.connect()
                await inner.send_command("HELLO")
                try:
                    greeting = await inner.read_response()
                except rx.ResponseError as error:
                    check_refusal(error, self.url)
                else:
                    check_greeting(greeting, self.url)
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error, sent=False) from error
        except BaseException:
            self.abort()
            raise

    async def send(self, *commands: tuple[Arg, ...]) -> None:
        """Send commands and do not wait. Raises the tree of `rqueue.errors`."""
        await self.connect()
        inner = self._inner
        try:
            async with asyncio.timeout(self._timeout):
                await inner.send_packed_command(inner.pack_commands(commands), check_health=False)
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error) from error
        except BaseException:
            self.abort()  # cancelled: half of a command may have been sent
            raise

    async def read(self) -> Any:
        """Read one reply; an error reply raises redis-py's ResponseError."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._inner.read_response()
        except rx.ResponseError:
            raise
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error) from error
        except BaseException:
            self.abort()  # cancelled: the reply would be taken for that of the next command
            raise

    async def command(self, *command: Arg) -> Any:
        """Send one command and read its reply."""
        await self.send(command)
        return await self.read()

    async def run(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Run a script call; a server that forgot the script is taught it (restart, flush)."""
        script = scripts.script(call.script)
        try:
            async with self._turn:
                try:
                    reply = await self.command("EVALSHA", script.sha, 2, *call.keys, *call.args)
                except rx.NoScriptError:
                    reply = await self.command("EVAL", script.source, 2, *call.keys, *call.args)
        except rx.ResponseError as error:
            raise self.refused(call, error, queue, consumer) from error
        return call.read(reply)

    async def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str = ""
    ) -> tuple[R, Any]:
        """Run a script call and a command that waits for what the call has announced, sent with
        it: the replies of both. Where only the command is refused, its reply is the error."""
        script = scripts.script(call.script)
        async with self._turn:
            await self.send(("EVALSHA", script.sha, 2, *call.keys, *call.args), command)
            try:
                reply = await self.read()
            except rx.ResponseError as error:
                # nothing was announced: what waits for it would wait for nothing
                self.abort()
                if not isinstance(error, rx.NoScriptError):
                    raise self.refused(call, error, queue) from error
            else:
                seen = call.read(reply)
                try:
                    return seen, await self.read()
                except rx.ResponseError as error:
                    return seen, self.refused(call, error, queue)
        await self.run(call, queue=queue)
        return await self.run_then(call, command, queue=queue)

    def refused(
        self, call: ScriptCall[Any], error: rx.ResponseError, queue: str, consumer: str = ""
    ) -> Exception:
        """The error for an error reply to a call. Where another server may be in charge by now,
        the connection is closed: only a new one looks its address up."""
        if (place := scripts.script(call.script).locate(str(error))) is not None:
            error.add_note(f"at {place}")
        found = translate(error, url=self.url, script=call.script, queue=queue, consumer=consumer)
        if moved_on(found):
            self.abort()
        return found

    async def _broken(self, error: Exception, *, sent: bool = True) -> Exception:
        # a reply may still be on its way: this connection must not be used again
        await self._inner.disconnect(nowait=True)
        return translate(error, url=self.url, sent=sent)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended.

    Said again where one cancellation was swallowed: asyncio.wait_for does so before Python 3.12,
    when what it waits for is ready at the same moment.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.2)
