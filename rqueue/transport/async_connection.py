"""One raw asyncio connection to Redis for the protocol: no pool, no hidden retry.

`rqueue.transport.connection` is the same for threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from redis import exceptions as rx
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from rqueue.errors import ConfigError, QueueDamaged, RedisTimeout
from rqueue.model.confirmation import Confirmation
from rqueue.protocol import confirming
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.error_mapping import moved_on, translate
from rqueue.protocol.exchange import Exchange
from rqueue.transport import stand_in
from rqueue.transport.async_vigil import AsyncVigil, async_vigil_of, watch
from rqueue.transport.connection import SLACK_S, blocks_for, plain_command
from rqueue.transport.home_loop import HomeLoop
from rqueue.transport.redis_client import is_cluster, url_of
from rqueue.transport.resp import QUIET_S
from rqueue.transport.server_check import check_greeting, check_refusal
from rqueue.transport.vigil import is_replaceable

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
        self._timeout = timeout
        self.until: float | None = None
        """Monotonic time beyond which nothing is waited for, for now."""
        self._inner: Any = self._made()
        self._elsewhere = False
        self._turn = asyncio.Lock()
        self._home = HomeLoop()
        stand_in.note(self)

    def _vigil(self) -> Callable[[], AsyncVigil] | None:
        """Who is asked whether another server is in charge by now; None: there never is one."""
        if stand_in.name_of() or not is_replaceable(self._client):
            return None
        return partial(async_vigil_of, self._client)

    def _limited(self, *, due: bool = True) -> AbstractAsyncContextManager[object]:
        """Waits inside for all the time that there is, or until another server is in charge. due:
        as of `watch`."""
        left = self._timeout
        if self.until is not None:
            left = max(0.0, self.until - monotonic())
            left = left if self._timeout is None else min(left, self._timeout)
        if self._ask is None:
            return asyncio.timeout(left)
        return watch(self._ask, self._inner, left, due=due)

    def _origin(self) -> tuple[type[Any], dict[str, Any]]:
        """The class and the arguments of redis-py's connection."""
        client: Any = self._client
        if name := stand_in.name_of():
            from rqueue.transport.memory.clients import open_async_memory_client

            client = open_async_memory_client(name)
        if is_cluster(client):
            raise ConfigError(
                "url", "is that of a whole Redis Cluster: what is asked for here needs one server"
            )
        pool = client.connection_pool
        return pool.connection_class, pool.connection_kwargs

    def _made(self) -> Any:
        kind, origin = self._origin()
        kwargs = dict(origin)
        kwargs.update(
            socket_timeout=None,  # ours: redis-py's may swallow a cancellation before Python 3.12
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            decode_responses=False,
        )
        kwargs.pop("retry_on_error", None)
        kwargs.pop("retry_on_timeout", None)
        self._ask = self._vigil()
        if self._ask is not None:
            most = kwargs.get("socket_connect_timeout") or QUIET_S
            kwargs["socket_connect_timeout"] = min(most, QUIET_S)
        return kind(**kwargs)

    def redirect(self) -> None:
        """Drop the connection; the next one leads where `stand_in` says now."""
        with suppress(RuntimeError):  # its loop is closed, and it is too
            self.abort()
        self._elsewhere = True
        self._turn = asyncio.Lock()
        self._home.leave()

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
        if self._home.ended:
            self._inner = self._made()
            self._turn = asyncio.Lock()
        else:
            # it is closed then as well: only its loop was too busy to say so in time
            with suppress(rx.TimeoutError):
                await self._inner.disconnect()
        self._home.leave()

    def abort(self) -> None:
        """Drop the connection now, without awaiting anything."""
        self._inner._close()

    async def connect(self) -> None:
        """Connect, log in and check what answers, if not connected. Raises the tree of
        `rqueue.errors`, and LifecycleError in another loop than that of the connection."""
        self._home.enter()
        if self._elsewhere:
            self._inner, self._elsewhere = self._made(), False
        inner = self._inner
        if inner.is_connected:
            return
        begun = monotonic()
        try:
            async with self._limited():
                await inner.connect()
                await inner.send_command("HELLO")
                try:
                    greeting = await inner.read_response()
                except rx.ResponseError as error:
                    check_refusal(error, self.url)
                else:
                    self._check_greeting(greeting)
        except (rx.RedisError, OSError) as error:
            failed = await self._broken(error, sent=False)
            if isinstance(failed, RedisTimeout):
                failed.elsewhere = self._ask is not None
                failed.waited = monotonic() - begun
            raise failed from error
        except BaseException:
            self.abort()
            raise

    def _check_greeting(self, greeting: Any) -> None:
        check_greeting(greeting, self.url)

    async def send(self, *commands: tuple[Arg, ...]) -> None:
        """Send commands and do not wait. Raises the tree of `rqueue.errors`."""
        await self.connect()
        inner = self._inner
        try:
            async with self._limited():
                await inner.send_packed_command(inner.pack_commands(commands), check_health=False)
        except (rx.RedisError, OSError) as error:
            raise await self._broken(error) from error
        except BaseException:
            self.abort()  # cancelled: half of a command may have been sent
            raise

    async def read(self, *, blocked: bool = False) -> Any:
        """Read one reply; an error reply raises redis-py's ResponseError. blocked: that of a
        command that blocks."""
        try:
            async with self._limited(due=not blocked):
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
        """Run a script call. Raises the tree of `rqueue.errors`."""
        async with self._turn:
            confirm = call.confirm
            if confirm is not None:
                exchange = Exchange(call, queue, consumer)
                await self.send(exchange.command, confirm.command)
                return await self._confirmed(exchange, confirm)
            await self.send(plain_command(call) or Exchange(call).command)
            return await self._finish(call, queue, consumer)

    async def begin(self, call: ScriptCall[Any]) -> None:
        """Send a script call and do not wait: `finish` reads its reply. The connection carries no
        other call until then."""
        confirm = call.confirm
        together = () if confirm is None else (confirm.command,)
        await self._turn.acquire()
        try:
            await self.send(plain_command(call) or Exchange(call).command, *together)
        except BaseException:
            self._turn.release()
            raise

    async def finish(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Read the reply of the call that was begun. Raises the tree of `rqueue.errors`."""
        try:
            if call.confirm is not None:
                return await self._confirmed(Exchange(call, queue, consumer), call.confirm)
            return await self._finish(call, queue, consumer)
        finally:
            self._turn.release()

    async def _finish(self, call: ScriptCall[R], queue: str, consumer: str) -> R:
        """The answer to a call that was sent; it is sent again where that is of use."""
        try:
            reply = await self.read()
        except rx.ResponseError as error:
            exchange = Exchange(call, queue, consumer)
            if (refusal := await self.refused(exchange, error)) is not None:
                raise refusal from error
        else:
            return Exchange(call, queue).answered(reply) if call.needs else call.read(reply)
        while True:
            await self.send(exchange.command)
            try:
                reply = await self.read()
            except rx.ResponseError as error:
                if (refusal := await self.refused(exchange, error)) is not None:
                    raise refusal from error
            else:
                if not exchange.goes_on(reply):
                    return exchange.answered(reply)

    async def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str = ""
    ) -> tuple[R, Any]:
        """Send a script call and, in the same packet, a command that blocks until what the call
        prepared happens (a result list gets its element). Returns both replies; where the second
        is refused, its reply is the error. Both are waited for until `SLACK_S` after its time."""
        exchange = Exchange(call, queue)
        async with self._turn:
            self.until = monotonic() + blocks_for(command) + SLACK_S
            try:
                await self.send(exchange.command, command)
                seen, reply = await self._both(exchange, command)
            finally:
                self.until = None
            if isinstance(reply, rx.ResponseError):
                return seen, await self._refused_then(exchange, reply)
            return seen, reply

    async def _both(self, exchange: Exchange[R], command: tuple[Arg, ...]) -> tuple[R, Any]:
        """The replies to a call and to the command behind it; the second may be an error. Raises
        the tree of `rqueue.errors`."""
        while True:
            try:
                reply = await self.read()
            except rx.ResponseError as error:
                # nothing was prepared: the second command would block for nothing
                self.abort()
                if (refusal := await self.refused(exchange, error)) is not None:
                    raise refusal from error
            else:
                if not exchange.goes_on(reply):
                    break
            await self.send(exchange.command, *(() if exchange.teaches else (command,)))
        try:
            seen = exchange.answered(reply)
        except QueueDamaged:
            self.abort()  # the second command waits for what nobody has prepared
            raise
        try:
            return seen, await self.read(blocked=True)
        except rx.ResponseError as error:
            return seen, error

    async def _confirmed(self, exchange: Exchange[R], confirm: Confirmation) -> R:
        """The answer to a call that was sent with the wait for its confirmation, and how that
        went."""
        answer, reply = await self._both(exchange, confirm.command)
        if confirming.says_nothing(exchange.call, answer, reply):
            try:
                await self.send(*confirming.again(exchange.call, confirm))
                await self.read()
                reply = await self.read()
            except rx.ResponseError as error:
                reply = self.meant(error)
        if isinstance(reply, Exception):
            self.abort()  # a reply may be on its way, and another server be in charge
        found: R = confirming.marked(answer, confirm, reply, self.url)
        return found

    def meant(self, error: rx.ResponseError) -> Exception:
        """What an error reply means to a command that was sent by itself."""
        return translate(error, url=self.url)

    async def _refused_then(
        self, exchange: Exchange[Any], error: rx.ResponseError
    ) -> Exception | None:
        """What it means to the command behind a call."""
        return await self.refused(exchange, error)

    async def refused(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        """As `Exchange.refused`. Where another server may be in charge by now, the connection is
        closed: only a new one looks its address up."""
        refusal = exchange.refused(error, self.url)
        if refusal is not None and moved_on(refusal):
            self.abort()
        return refusal

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
