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
from time import monotonic

from rqueue.protocol.slots import Address

__all__ = ["LOOK_S", "Knock"]

SILENT_S = 1.0
"""Seconds without an answer after which somewhere else is to be knocked at."""

LOOK_S = 0.02
"""Seconds between two looks for an answer."""


_UNDER_WAY = (errno.EINPROGRESS, errno.EAGAIN)


class Knock:
    """A connection to an address, over which anything at all is to be said. silent: called with the
    address where nothing is."""

    def __init__(self, address: Address, silent: Callable[[Address], object]) -> None:
        self._address = address
        self._silent = silent
        self._since = monotonic()
        self._asked = False
        kind, *_, at = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(kind, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._refused = self._socket.connect_ex(at) not in (0, *_UNDER_WAY)

    def answered(self) -> bool | None:
        """Whether it is worth while to connect: an answer came, of whatever kind, or a refusal, of
        which the connection will tell. None: not yet. False: nothing came for too long."""
        if self._refused or self._heard():
            self.close()
            return True
        if monotonic() - self._since < SILENT_S:
            return None
        self.close()
        self._silent(self._address)
        return False

    def close(self) -> None:
        """Stop waiting."""
        self._socket.close()

    def _heard(self) -> bool:
        readable, writable, _ = select.select(
            [self._socket], () if self._asked else [self._socket], (), 0
        )
        if writable and not readable:
            self._asked = True
            with suppress(OSError):  # then the end of the connection can be read
                self._socket.send(b"PING\r\n")
        return bool(readable)
