"""One client of a server in memory: its commands in order, and their replies."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import Any

from redis import exceptions as rx
from redis.connection import DefaultParser

from rqueue.errors import LifecycleError
from rqueue.transport.memory.keyspace import Refusal, Status
from rqueue.transport.memory.server import MemoryServer, Waiter

__all__ = ["Session", "as_words"]

Words = list[bytes]

_to_error: Any = DefaultParser.parse_error


def as_words(command: Sequence[Any]) -> Words:
    """A command as it is sent."""
    return [
        word if type(word) is bytes else word.encode() if type(word) is str else _bytes(word)
        for word in command
    ]


def _bytes(word: Any) -> bytes:
    if isinstance(word, bytes | bytearray | memoryview):
        return bytes(word)
    if isinstance(word, str):  # a subclass: an enum's member
        return word.encode()
    if isinstance(word, int | float) and not isinstance(word, bool):
        return repr(word).encode()
    raise rx.DataError(f"Invalid input of type: '{type(word).__name__}'")


class Session:
    """What a connection of redis-py has in place of its socket. Used by one thread at a time."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self._replies: deque[Any] = deque()
        self._later: deque[Words] = deque()
        self._waiter: Waiter | None = None
        self._transaction: list[Words] | None = None
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self.heard: Callable[[], object] = lambda: None
        """Called, in any thread, when the client is not blocked any more."""

    # -- asking ------------------------------------------------------------------------------------

    def send(self, commands: Sequence[Words]) -> None:
        """Run commands; behind one that blocks the others wait."""
        for words in commands:
            if self._waiter is None:
                self._run(words)
            else:
                self._later.append(words)

    def _run(self, words: Words) -> None:
        name = words[0]
        if self._transaction is not None:
            if name == b"EXEC":
                commands, self._transaction = self._transaction, None
                self._replies.append([_plain(one) for one in self.server.run_all(commands)])
            elif name == b"DISCARD":
                self._transaction = None
                self._replies.append(b"OK")
            else:
                self._transaction.append(words)
                self._replies.append(b"QUEUED")
            return
        if name == b"MULTI":
            self._transaction = []
            self._replies.append(b"OK")
            return
        try:
            reply = self.server.run(words)
        except Refusal as refused:
            self._replies.append(_plain(refused))
            return
        except LifecycleError as error:  # of `before_wait`: it is for who reads
            self._replies.append(error)
            return
        if type(reply) is Waiter:
            self._waiter = reply
            reply.heard = self._ring
            if reply.replied:  # before anybody could hear it
                self._ring()
        else:
            self._replies.append(_plain(reply))

    # -- replies -----------------------------------------------------------------------------------

    def pending(self) -> bool:
        """Whether a reply can be read now."""
        self._look()
        return bool(self._replies)

    def _look(self) -> None:
        waiter = self._waiter
        if waiter is None:
            return
        if not waiter.replied:
            if waiter.until is None or monotonic() < waiter.until:
                return
            self.server.give_up(waiter)
        self._waiter = None
        self._replies.append(_plain(waiter.reply))
        later, self._later = list(self._later), deque()
        self.send(later)

    def until(self) -> float | None:
        """When the command that blocks ends by itself, by `time.monotonic()`."""
        return None if self._waiter is None else self._waiter.until

    def next(self) -> Any:
        """The next reply, which is there; an error reply is raised."""
        self._look()
        if not self._replies:
            raise rx.ConnectionError("no command was sent whose reply is not read")
        reply = self._replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def wait(self, timeout: float | None) -> bool:
        """Wait until a reply can be read, at most so many seconds; whether there is one."""
        if self.pending() or self._waiter is None:
            return True
        event = Event()
        self.heard = event.set
        try:
            waiter = self._waiter
            end = None if timeout is None else monotonic() + timeout
            ends = [at for at in (end, waiter.until) if at is not None]
            if not waiter.replied:
                event.wait(max(0.0, min(ends) - monotonic()) if ends else None)
        finally:
            self.heard = lambda: None
        return self.pending()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell[1].send(b"!")
        self.heard()

    # -- as a socket -------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Readable once the client is not blocked any more. Made when it is asked for."""
        if self._bell is None:
            self._bell = socket.socketpair()
            if self._waiter is not None and self._waiter.replied:
                self._bell[1].send(b"!")
        return self._bell[0].fileno()

    def close(self) -> None:
        """Go: a client that is gone takes nothing."""
        if self._waiter is not None:
            self.server.give_up(self._waiter)
            self._waiter = None
        self._replies.clear()
        self._later.clear()
        self._transaction = None
        bell, self._bell = self._bell, None
        for end in bell or ():
            end.close()


def _plain(reply: Any) -> Any:
    """A reply as redis-py's parser gives it."""
    if type(reply) is Status:
        return bytes(reply)
    if isinstance(reply, Refusal):
        return _to_error(str(reply))
    if type(reply) is list:
        return [_plain(one) for one in reply]
    return reply
