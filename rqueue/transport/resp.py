"""RESP on a plain socket: what redis-py does around a command costs as much as the command.

The connection is redis-py's, logged in; this takes its socket over. hiredis packs and parses. On
TLS, and to a server in memory, redis-py's own framing goes on, in the same form.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, Protocol, cast

import hiredis
from redis import exceptions as rx

BUFFER = 65536

Command = tuple[str | bytes | int | float, ...]

# hiredis declares a tuple of one element and means any tuple
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)


class Framing(Protocol):
    """Commands and replies over something that is connected, used by one thread."""

    def send(self, *commands: Command) -> None:
        """Send commands and do not wait."""
        ...

    def ask(self, command: Command) -> Any:
        """Send one command and read its reply; an error reply is raised."""
        ...

    def read(self) -> Any:
        """Read one reply; an error reply is raised."""
        ...


class ClientFraming:
    """What redis-py's own connection does. Raises its errors."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def send(self, *commands: Command) -> None:
        """As `Framing.send`."""
        packed = self._connection.pack_commands(commands)
        self._connection.send_packed_command(packed, check_health=False)

    def ask(self, command: Command) -> Any:
        """As `Framing.ask`."""
        self.send(command)
        return self.read()

    def read(self) -> Any:
        """As `Framing.read`."""
        return self._connection.read_response()


class RespSocket:
    """Commands and replies on one connected socket, used by one thread.

    `timeout`: seconds that a command or a reply may take; None waits for ever. `to_error` makes
    the exception of an error reply. Raises redis-py's TimeoutError and ConnectionError.
    """

    def __init__(
        self, sock: socket.socket, timeout: float | None, to_error: Callable[[str], Exception]
    ) -> None:
        self._sock = sock
        self._buffer = bytearray(BUFFER)
        self._reader = hiredis.Reader(
            protocolError=rx.InvalidResponse, replyError=to_error, notEnoughData=self
        )
        # The kernel keeps the time: a timeout of Python's own costs a poll before every call.
        sock.settimeout(None)
        if timeout is not None:
            limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6) or int(timeout < 1))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, *commands: Command) -> None:
        """Send commands and do not wait."""
        try:
            if len(commands) == 1:
                self._sock.sendall(_pack(commands[0]))
            else:
                self._sock.sendall(b"".join(map(_pack, commands)))
        except BlockingIOError:
            raise rx.TimeoutError("Timeout writing to socket") from None

    def ask(self, command: Command) -> Any:
        """Send one command and read its reply; an error reply is raised."""
        try:
            self._sock.sendall(_pack(command))
        except BlockingIOError:
            raise rx.TimeoutError("Timeout writing to socket") from None
        return self.read()

    def read(self) -> Any:
        """Read one reply; an error reply is raised."""
        reader = self._reader
        reply = reader.gets()
        while reply is self:  # there is not all of it yet
            try:
                size = self._sock.recv_into(self._buffer)
            except BlockingIOError:
                raise rx.TimeoutError("Timeout reading from socket") from None
            if not size:
                raise rx.ConnectionError("Connection closed by server.")
            reader.feed(self._buffer, 0, size)
            reply = reader.gets()
        if isinstance(reply, rx.RedisError):
            raise reply
        return reply
