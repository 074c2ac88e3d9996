"""`connection` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from redis import exceptions as rx
from redis.asyncio.connection import AbstractConnection

from rqueue.transport.memory.server import server_of
from rqueue.transport.memory.session import Session, as_words

__all__ = ["AsyncMemoryConnection"]


class AsyncMemoryConnection(AbstractConnection):
    """What redis-py and `rqueue.transport.async_connection` send over, without a socket."""

    def __init__(self, memory: str = "", **options: Any) -> None:
        super().__init__(**{**options, "protocol": 2})
        self.memory = memory
        self.host, self.port = self._host_error(), 0  # redis-py 7.2 names them in its metrics
        self._session: Session | None = None

    def repr_pieces(self) -> list[tuple[str, Any]]:
        """For messages."""
        return [("memory", self.memory)]

    async def _connect(self) -> None:
        self._session = Session(server_of(self.memory))

    def _host_error(self) -> str:
        return f"memory://{self.memory}"

    @property
    def is_connected(self) -> bool:
        """Whether it is a client of the server."""
        return self._session is not None

    async def connect(self) -> None:
        """Be a client of the server."""
        if self._session is None:
            await self._connect()

    async def connect_check_health(
        self, check_health: bool = True, retry_socket_connect: bool = True
    ) -> None:
        """As `connect`: there is no login."""
        await self.connect()

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    async def disconnect(self, *_: Any, **__: Any) -> None:
        """Be none any more."""
        self._close()

    def pack_command(self, *command: Any) -> Any:
        """A command as `send_packed_command` takes it."""
        return [as_words(command)]

    def pack_commands(self, commands: Any) -> Any:
        """Commands as `send_packed_command` takes them."""
        return [as_words(command) for command in commands]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Run commands."""
        await self.connect()
        assert self._session is not None
        sent: Sequence[list[bytes]] = command
        self._session.send(sent)

    async def send_command(self, *args: Any, **_: Any) -> None:
        """Run one command."""
        await self.send_packed_command([as_words(args)])

    async def can_read(self, *_: Any, **__: Any) -> bool:
        """Whether there is a reply."""
        return self._session is not None and self._session.pending()

    can_read_destructive = can_read

    async def read_response(self, *_: Any, timeout: float | None = None, **__: Any) -> Any:
        """The next reply; an error reply is raised."""
        session = self._session
        if session is None:
            raise rx.ConnectionError("not connected")
        try:
            async with asyncio.timeout(self.socket_timeout):
                while not session.pending():
                    await _heard(session)
                    if self._session is not session:
                        raise rx.ConnectionError("Connection closed")
        except TimeoutError:
            self._close()
            raise rx.TimeoutError(f"Timeout reading from {self._host_error()}") from None
        except BaseException:
            self._close()
            raise
        return session.next()


async def _heard(session: Session) -> None:
    """Until the session may have a reply."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    session.heard = lambda: loop.call_soon_threadsafe(event.set)
    try:
        if session.pending():
            return
        until = session.until()
        left = None if until is None else max(0.0, until - monotonic())
        try:
            async with asyncio.timeout(left):
                await event.wait()
        except TimeoutError:
            return
    finally:
        session.heard = lambda: None
