"""Waiting for wake-ups on the wake lists of one or many consumers, with one blocked command.

A wake-up is a hint (H-07): the truth is in the queue. After a lost connection the listener says so
with an event `reconnected`, after which its consumer pulls.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from time import monotonic
from typing import Any

from redis import exceptions as rx

from rqueue.errors import ConnectionLost, RedisTimeout, ServerError, SlotBusy
from rqueue.protocol.wake import RECONNECTED, Wake
from rqueue.transport.connection import Connection
from rqueue.transport.resp import readable
from rqueue.transport.vigil import hang_up

LISTEN_S = 60
"""Seconds that one blocked command lasts. It bounds how long a dead connection stays unnoticed, and
what an idle worker costs: one command a minute."""

SLACK_S = 10.0
"""Seconds that its answer may be late before the connection counts as dead."""


def unblocked(error: rx.ResponseError, meant: Exception) -> bool:
    """Whether an error reply only says that the wait is over: the server became a replica, or the
    slot of a cluster is at another node. The next wait, over a new connection, learns where to go.
    meant: what the reply means to the connection."""
    moved = isinstance(error, rx.MovedError) and isinstance(meant, SlotBusy)
    return moved or str(error).startswith("UNBLOCKED")


class WakeListener:
    """Blocks on wake lists. One thread at a time; `add` and `remove` between waits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._keys: dict[bytes, str] = {}
        self._armed = False
        self._armed_at = 0.0
        self._stale = False
        self._redirected = False
        """The last wait ended with a word that the queue is elsewhere."""

    def add(self, consumer: str, wake_key: str) -> bool:
        """Listen for this consumer too. Whether a command was blocked for the others: what it was
        about to bring is lost."""
        self._keys[wake_key.encode()] = consumer
        return self._disarm()

    def remove(self, wake_key: str) -> bool:
        """Do not listen for it any more; as `add`."""
        return self._keys.pop(wake_key.encode(), None) is not None and self._disarm()

    def suspect(self) -> None:
        """The server may be gone without a word: listen over a new connection."""
        self._connection.suspect()
        self._armed, self._stale = False, True

    def doubt(self) -> None:
        """The server may be gone without a word: end the wait that is under way, with its
        connection. Called by any thread."""
        if isinstance(sock := self._connection.socket, socket.socket):
            hang_up(sock)

    def close(self) -> None:
        """Close the connection; a wait after that opens it again."""
        self._connection.close()
        self._armed = False

    def wait(self, timeout: float | None, interrupt: Any = None) -> list[Wake]:
        """Wait for the next wake-up, at most `timeout` seconds (None: for ever); [] at the end.

        interrupt: a socket or file descriptor that ends the wait when it becomes readable (a
        signal's wake-up pipe). A lost connection is one "reconnected" per consumer, once it is
        back; while Redis cannot be reached, or refuses, the error of `rqueue.errors` is raised: it
        is for the caller to pause before the next try.
        """
        if not self._keys:
            raise ValueError("nothing to listen to")
        if not self._armed:
            try:
                self._connection.send(("BLPOP", *self._keys, LISTEN_S))
                self._armed, self._armed_at = True, monotonic()
            except ServerError:
                self._stale = True
                raise
        if self._stale:
            self._stale = False
            return [Wake(consumer, RECONNECTED) for consumer in self._keys.values()]
        connection = self._connection
        sock = connection.socket
        if sock is not None and not (connection.unread is not None and connection.unread()):
            most = LISTEN_S + SLACK_S
            wanted = most if timeout is None else min(timeout, most)
            watched = [sock] if interrupt is None else [sock, interrupt]
            if sock not in readable(watched, wanted):
                if monotonic() - self._armed_at > most:
                    # the blocked command has had no answer, not even that its time is over
                    self._disarm()
                    self._stale = True
                return []
        self._armed = False
        try:
            reply = connection.read()
        except rx.ResponseError as error:
            self._ended(error)
            return []
        except (ConnectionLost, RedisTimeout):
            self._stale = True
            return []
        except ServerError:
            self._stale = True
            raise
        self._redirected = False
        if reply is None:
            return []
        key, element = reply
        return [Wake(self._keys[key], element)]

    @property
    def socket(self) -> Any:
        """What becomes readable when there is something to hear; None where `wait` has something
        to do at once."""
        if not self._armed or self._stale:
            return None
        connection = self._connection
        unread = connection.unread is not None and connection.unread()
        return None if unread else connection.socket

    def _disarm(self) -> bool:
        armed, self._armed = self._armed, False
        if armed:
            # the blocked command names the old keys: only closing the connection takes it back
            self._connection.close()
        return armed

    def _ended(self, error: rx.ResponseError) -> None:
        """The wait was ended by an error reply. Raises what it means, unless it is that alone."""
        self._stale = True
        self._connection.close()
        meant = self._connection.meant(error)
        # two nodes may disagree about a slot: then it is for the caller to pause
        again, self._redirected = self._redirected, True
        if again or not unblocked(error, meant):
            raise meant from error


def first_readable(
    listeners: Sequence[WakeListener],
    timeout: float | None,
    interrupt: Any,
    others: Sequence[Any] = (),
) -> list[WakeListener]:
    """Of several listeners, each with its connection (on a cluster no command waits for keys of two
    slots): those whose `wait` has something to do. Waits for the first one, as `wait` does, or
    until one of the sockets `others` becomes readable."""
    sockets = [listener.socket for listener in listeners]
    if None in sockets:
        return [one for one, sock in zip(listeners, sockets, strict=True) if sock is None]
    wanted = LISTEN_S + SLACK_S if timeout is None else min(timeout, LISTEN_S + SLACK_S)
    ready = readable([*sockets, *others, interrupt], wanted)
    if not ready:
        return list(listeners)  # one of them may have been silent for too long
    return [one for one, sock in zip(listeners, sockets, strict=True) if sock in ready]
