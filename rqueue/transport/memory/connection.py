"""Connections to a server in memory, as redis-py has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import exceptions as rx
from redis.connection import AbstractConnection

from rqueue.transport.memory.server import server_of
from rqueue.transport.memory.session import Session, as_words

__all__ = ["MemoryConnection"]

BLOCK_S = 3600.0
"""Seconds after which a read without a limit gives up: nobody would ever come."""


class MemoryConnection(AbstractConnection):
    """What redis-py and `rqueue.transport.connection` send over, without a socket."""

    def __init__(self, memory: str = "", **options: Any) -> None:
        super().__init__(**{**options, "protocol": 2})
        self.memory = memory
        self.host, self.port = self._host_error(), 0  # redis-py 7.2 names them in its metrics
        self._sock: Any = None

    def repr_pieces(self) -> list[tuple[str, Any]]:
        """For messages."""
        return [("memory", self.memory)]

    def _connect(self) -> Session:
        return Session(server_of(self.memory))

    def _host_error(self) -> str:
        return f"memory://{self.memory}"

    def connect(self) -> None:
        """Be a client of the server."""
        if self._sock is None:
            self._sock = self._connect()

    def connect_check_health(
        self, check_health: bool = True, retry_socket_connect: bool = True
    ) -> None:
        """As `connect`: there is no login."""
        self.connect()

    def disconnect(self, *_: Any, **__: Any) -> None:
        """Be none any more."""
        session, self._sock = self._sock, None
        if session is not None:
            session.close()

    def pack_command(self, *command: Any) -> Any:
        """A command as `send_packed_command` takes it."""
        return [as_words(command)]

    def pack_commands(self, commands: Any) -> Any:
        """Commands as `send_packed_command` takes them."""
        return [as_words(command) for command in commands]

    def send_packed_command(self, command: Sequence[Any], check_health: bool = True) -> None:
        """Run commands."""
        self.connect()
        self._sock.send(command)

    def send_command(self, *args: Any, **_: Any) -> None:
        """Run one command."""
        self.send_packed_command([as_words(args)])

    def can_read(self, timeout: float | None = 0) -> bool:
        """Whether there is a reply."""
        return self._sock is not None and self._sock.pending()

    def read_response(self, *_: Any, timeout: Any = None, **__: Any) -> Any:
        """The next reply; an error reply is raised."""
        session = self._sock
        if session is None:
            raise rx.ConnectionError("not connected")
        limit = self.socket_timeout
        try:
            if not session.wait(BLOCK_S if limit is None else limit):
                self.disconnect()
                raise rx.TimeoutError(f"Timeout reading from {self._host_error()}")
        except BaseException:
            self.disconnect()
            raise
        return session.next()
