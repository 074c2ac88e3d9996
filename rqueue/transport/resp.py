"""RESP on a plain socket: what redis-py does around a command costs as much as the command.

The connection is redis-py's, logged in; this takes its socket over. hiredis packs and parses. On
TLS, and to a server in memory, redis-py's own framing goes on, in the same form.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EBADF
from functools import partial
from math import ceil
from typing import Any, Protocol, cast

import hiredis
from redis import exceptions as rx

BUFFER = 65536

LONGEST_MS = 86_400_000
"""The longest wait of one `poll`."""

QUIET_S = 1.5
"""Seconds without an answer after which it is late: another server may be in charge by now."""

Late = Callable[[int, float, bool], bool]
"""Waits for what is late. The event of `poll` (POLLIN: an answer; POLLOUT: room for a command), for
how many seconds, and whether it was due at once; says whether it is there."""

Command = tuple[str | bytes | int | float, ...]

# hiredis declares a tuple of one element and means any tuple
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)


def readable(watched: Iterable[Any], seconds: float | None) -> list[Any]:
    """Those of the sockets and descriptors of which a read would not wait, or [] after so many
    seconds (None: for ever). Raises OSError for a descriptor that is closed, and ValueError
    for a closed socket. Any descriptor will do: `select.select` refuses those from 1,024 up."""
    poll = select.poll()
    found = {}
    for one in watched:
        number = one if type(one) is int else one.fileno()
        found[number] = one
        poll.register(number, select.POLLIN)
    limit = None if seconds is None else min(LONGEST_MS, ceil(max(0.0, seconds) * 1000))
    ready = []
    for number, event in poll.poll(limit):
        if event & select.POLLNVAL:
            raise OSError(EBADF, f"file descriptor {number} is closed")
        ready.append(found[number])
    return ready


class Framing(Protocol):
    """Commands and replies over something that is connected, used by one thread."""

    def send(self, *commands: Command) -> None:
        """Send commands and do not wait."""
        ...

    def ask(self, command: Command) -> Any:
        """Send one command and read its reply; an error reply is raised."""
        ...

    def read(self, *, blocked: bool = False) -> Any:
        """Read one reply; an error reply is raised. blocked: that of a command that blocks."""
        ...


class ClientFraming:
    """What redis-py's own connection does. left: seconds that a reply may take, if these are fewer
    than usual. Raises redis-py's errors."""

    def __init__(self, connection: Any, left: Callable[[], float | None]) -> None:
        self._connection = connection
        self._left = left

    def send(self, *commands: Command) -> None:
        """As `Framing.send`."""
        packed = self._connection.pack_commands(commands)
        self._connection.send_packed_command(packed, check_health=False)

    def ask(self, command: Command) -> Any:
        """As `Framing.ask`."""
        self.send(command)
        return self.read()

    def read(self, *, blocked: bool = False) -> Any:
        """As `Framing.read`."""
        inner = self._connection
        inner.blocked = blocked
        if (left := self._left()) is None:
            return inner.read_response()
        sock, limit = inner._sock, inner.socket_timeout
        sock.settimeout(left if limit is None else min(left, limit))
        try:
            return inner.read_response()
        finally:
            sock.settimeout(limit)


class RespSocket:
    """Commands and replies on one connected socket, used by one thread.

    - timeout: seconds that a command or a reply may take; None waits for ever.
    - to_error: makes the exception of an error reply.
    - late: waits for what has not come within `QUIET_S`.
    - watched: it waits for room for a command too.

    Raises redis-py's TimeoutError and ConnectionError.
    """

    def __init__(
        self,
        sock: socket.socket,
        timeout: float | None,
        to_error: Callable[[str], Exception],
        late: Late | None = None,
        *,
        watched: bool = False,
    ) -> None:
        self._sock = sock
        self._send: Callable[[bytes], object] = self._send_on if watched else sock.sendall
        self._timeout = timeout
        self._late = late or partial(happens, sock)
        self._buffer = bytearray(BUFFER)
        self._reader = hiredis.Reader(
            protocolError=rx.InvalidResponse, replyError=to_error, notEnoughData=self
        )
        # The kernel keeps the time: a timeout of Python's own costs a poll before every call.
        sock.settimeout(None)
        if timeout is not None:
            self._quiet = min(timeout, QUIET_S)
            _set_limit(sock, socket.SO_RCVTIMEO, self._quiet)
            _set_limit(sock, socket.SO_SNDTIMEO, self._quiet if watched else timeout)

    def send(self, *commands: Command) -> None:
        """Send commands and do not wait."""
        try:
            if len(commands) == 1:
                self._send(_pack(commands[0]))
            else:
                self._send(b"".join(map(_pack, commands)))
        except BlockingIOError:
            raise rx.TimeoutError("Timeout writing to socket") from None

    def ask(self, command: Command) -> Any:
        """Send one command and read its reply; an error reply is raised."""
        try:
            self._send(_pack(command))
        except BlockingIOError:
            raise rx.TimeoutError("Timeout writing to socket") from None
        return self.read()

    def read(self, *, blocked: bool = False) -> Any:
        """Read one reply; an error reply is raised."""
        reader = self._reader
        reply = reader.gets()
        while reply is self:  # there is not all of it yet
            try:
                size = self._sock.recv_into(self._buffer)
            except BlockingIOError:
                self._wait_on(not blocked, select.POLLIN)
                continue
            if not size:
                raise rx.ConnectionError("Connection closed by server.")
            reader.feed(self._buffer, 0, size)
            reply = reader.gets()
        if isinstance(reply, rx.RedisError):
            raise reply
        return reply

    def _send_on(self, packed: bytes) -> None:
        """`sendall`, which can be gone on with after a time-out."""
        left, flags = memoryview(packed), 0
        while True:
            with suppress(BlockingIOError):
                left = left[self._sock.send(left, flags) :]
            if not left:
                return
            self._wait_on(True, select.POLLOUT)  # the kernel has waited already
            flags = socket.MSG_DONTWAIT

    def _wait_on(self, due: bool, event: int) -> None:
        """Nothing happened while the kernel waited: wait for all the time there is."""
        assert self._timeout is not None
        left = self._timeout - self._quiet
        if left <= 0 or not self._late(event, left, due):
            raise rx.TimeoutError("Timeout reading from socket")


def happens(sock: socket.socket, event: int, seconds: float, _due: bool = True) -> bool:
    """Whether an event of `poll`, or the end of the connection, comes within so many seconds."""
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def _set_limit(sock: socket.socket, which: int, seconds: float) -> None:
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6) or int(seconds < 1))
    sock.setsockopt(socket.SOL_SOCKET, which, limit)
