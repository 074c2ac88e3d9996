"""Whether a server answers, found out without waiting for it.

Who has other servers to see to knocks before it connects anew to one that was gone: a host that has
vanished answers nothing, and each try to connect would take its whole timeout.
"""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from time import monotonic
from typing import Protocol

from rqueue.errors import ServerError
from rqueue.protocol.slots import Address

__all__ = ["AGAIN_S", "LOOK_S", "SILENT_S", "AnyKnock", "Knock"]

SILENT_S = 1.0
"""Seconds without an answer after which a knock was in vain."""

AGAIN_S = 0.5
"""Seconds without an answer after which it is asked whether another server is in charge by now."""

LOOK_S = 0.02
"""Seconds between two looks for an answer."""


_UNDER_WAY = (errno.EINPROGRESS, errno.EAGAIN)


class AnyKnock(Protocol):
    """A knock, at whatever door."""

    def answered(self, within: float = 0.0) -> bool | None:
        """Whether it is worth while to connect; None: that is not known yet, though it was waited
        for so many seconds. False: nothing came for too long. Raises the server errors."""

    def close(self) -> None:
        """Stop waiting."""


class Knock:
    """A connection over which anything at all is to be said. where: says to which address, where
    that may be another one by now; raises the server errors. silent: called with an address where
    nothing is said."""

    def __init__(self, where: Callable[[], Address], silent: Callable[[Address], object]) -> None:
        self._where = where
        self._silent = silent
        self._open(where())

    def _open(self, address: Address) -> None:
        self._address = address
        self._since = monotonic()
        self._again_at = self._since + AGAIN_S
        self._asked = False
        kind, *_, at = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(kind, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._refused = self._socket.connect_ex(at) not in (0, *_UNDER_WAY)

    def answered(self, within: float = 0.0) -> bool | None:
        """Whether it is worth while to connect: an answer came, of whatever kind, or a refusal, of
        which the connection will tell. None: not yet, though it was waited for so many seconds.
        False: nothing came for too long."""
        if self._refused or self._heard(within):
            self.close()
            return True
        now = monotonic()
        if now >= self._since + SILENT_S:
            self.close()
            self._silent(self._address)
            return False
        if now >= self._again_at:
            self._ask_again()
        return None

    def _ask_again(self) -> None:
        self._again_at = monotonic() + AGAIN_S
        self._silent(self._address)
        with suppress(ServerError):
            if (address := self._where()) != self._address:
                self.close()
                self._open(address)

    def close(self) -> None:
        """Stop waiting."""
        self._socket.close()

    def _heard(self, within: float) -> bool:
        until = monotonic() + within
        while True:
            left = max(0.0, until - monotonic())
            poll = select.poll()
            poll.register(self._socket, select.POLLIN | (0 if self._asked else select.POLLOUT))
            event = next((event for _, event in poll.poll(ceil(left * 1000))), 0)
            # an end of the connection too can be read
            if not event or event & ~select.POLLOUT:
                return bool(event)
            self._asked = True
            with suppress(OSError):  # then the end of the connection can be read
                self._socket.send(b"PING\r\n")
