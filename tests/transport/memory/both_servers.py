"""The same commands to a real server and to one in memory, and their replies as they can be
compared."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import redis

from rqueue.transport.memory.server import MemoryServer
from rqueue.transport.memory.session import Session, as_words

UNORDERED = {"HKEYS", "HVALS", "SMEMBERS", "KEYS"}
PAIRED = {"HGETALL"}
"""Replies in no order, of members or of pairs."""
SCANS = {"HSCAN", "ZSCAN", "SCAN"}
RANDOM = {"HRANDFIELD", "SRANDMEMBER"}
"""Of these only how many they are."""
STREAMS = {"XADD", "XRANGE", "XREVRANGE"}
"""Ids are times; what they carry is compared."""

Command = tuple[Any, ...]


def _pairs(flat: Sequence[Any]) -> list[Any]:
    return sorted(zip(flat[::2], flat[1::2], strict=True))


def comparable(command: Command, reply: Any) -> Any:
    """A reply without what may differ from one server to another."""
    name = str(command[0]).upper()
    if isinstance(reply, Exception):
        return code_of(reply)
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply)
    if name in PAIRED and isinstance(reply, list):
        return _pairs(reply)
    if name in SCANS and isinstance(reply, list):
        return _pairs(_numbers(reply[1])) if name != "SCAN" else sorted(reply[1])
    if name in RANDOM and isinstance(reply, list):
        return len(reply)
    if name == "XADD" and isinstance(reply, bytes):
        return reply.count(b"-")
    if name in STREAMS and isinstance(reply, list):
        return [fields for _, fields in reply]
    return _numbers(reply)


def code_of(error: Exception) -> str:
    """What an error is, in whatever words a version of Redis says it."""
    said = str(error)
    return next((code for code in ("WRONGTYPE", "KIND", "NOSCRIPT") if code in said), "ERR")


_FRACTION = re.compile(rb"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def _numbers(reply: Any) -> Any:
    """Scores are written with more digits by older servers."""
    if isinstance(reply, list):
        return [_numbers(one) for one in reply]
    if isinstance(reply, bytes) and _FRACTION.fullmatch(reply) and not reply.isdigit():
        return float(reply)
    return reply


_PARAMETERS = inspect.signature(redis.ConnectionPool.get_connection).parameters
_NAMED = ("_",) if _PARAMETERS["command_name"].default is inspect.Parameter.empty else ()
"""redis-py before 5.3 wants the name of a command, and makes nothing of it."""


class BothServers:
    """A connection to each. Keys are of this object alone: `begin` makes them new."""

    def __init__(self, real: redis.Redis) -> None:
        self._real = real
        self._number = 0
        self.begin()

    def begin(self) -> None:
        """Forget all keys."""
        self._number += 1
        if keys := self._real.keys(f"{{both}}:{self._number - 1}:*"):
            self._real.delete(*keys)
        self._memory = Session(MemoryServer())

    def key(self, name: str) -> str:
        return f"{{both}}:{self._number}:{name}"

    def in_memory(self, commands: Sequence[Command]) -> list[Any]:
        replies: list[Any] = []
        for command in commands:
            self._memory.send([as_words(command)])
            try:
                replies.append(self._memory.next())
            except redis.ResponseError as error:
                replies.append(error)
        return replies

    def really(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._real.connection_pool.get_connection(*_NAMED)
        try:
            connection.send_packed_command(connection.pack_commands(commands))
            replies: list[Any] = []
            for _ in commands:
                try:
                    replies.append(connection.read_response())
                except redis.ResponseError as error:
                    replies.append(error)
            return replies
        finally:
            self._real.connection_pool.release(connection)

    def difference(self, commands: Sequence[Command]) -> str:
        """Where the two differ first; "" where they do not."""
        both = zip(commands, self.really(commands), self.in_memory(commands), strict=True)
        for command, real, fake in both:
            expected, found = comparable(command, real), comparable(command, fake)
            if expected != found:
                return f"{command}: a real server says {expected!r}, the one in memory {found!r}"
        return ""
