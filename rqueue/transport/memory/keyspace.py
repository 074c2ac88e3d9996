"""The keys of a server in memory: values by their names, each of one type, and when they end."""

from __future__ import annotations

from typing import Any, TypeVar

from rqueue.transport.memory.sorted_set import SortedSet
from rqueue.transport.memory.stream import Stream

__all__ = ["Hash", "Keyspace", "Refusal", "Set", "Status", "Unsupported"]

V = TypeVar("V")

Hash = dict[bytes, bytes]


class Set(dict[bytes, None]):
    """A set, which keeps the order in which its members came: what is random in Redis is the same
    in each run of a test."""


class Refusal(Exception):
    """An error reply; its text begins with a code."""


class Unsupported(NotImplementedError):
    """A command, or an option of one, that Redis has and the server in memory has not."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"rqueue's server in memory has no {what}: use a real one in this test (EmbeddedRedis)"
        )


class Status(bytes):
    """A reply such as OK, which is no bulk string: scripts see it as a table."""


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"

TYPES: dict[type, bytes] = {
    bytes: b"string",
    dict: b"hash",
    list: b"list",
    Set: b"set",
    SortedSet: b"zset",
    Stream: b"stream",
}


class Keyspace:
    """Values by their keys. `now_us`: the time at which a command began; it stands still while a
    script runs, and so does what has ended."""

    def __init__(self) -> None:
        self.values: dict[bytes, Any] = {}
        self.ends_ms: dict[bytes, int] = {}
        self.now_us = 0

    @property
    def now_ms(self) -> int:
        """The time in ms."""
        return self.now_us // 1000

    def get(self, key: bytes) -> Any:
        """The value of a key, of whatever type, or None."""
        if key in self.ends_ms and self.ends_ms[key] <= self.now_us // 1000:
            self.delete(key)
        return self.values.get(key)

    def find(self, key: bytes, kind: type[V]) -> V | None:
        """The value of a key if there is one. Refuses one of another type."""
        value = self.get(key) if key in self.ends_ms else self.values.get(key)
        if value is None or type(value) is kind:
            return value
        raise Refusal(WRONG_TYPE)

    def made(self, key: bytes, kind: type[V]) -> V:
        """The value of a key, made where there is none. Refuses one of another type."""
        value = self.find(key, kind)
        if value is None:
            value = self.values[key] = kind()
        return value

    def put(self, key: bytes, value: Any) -> None:
        """Set a key, which ends at no time then."""
        self.values[key] = value
        self.ends_ms.pop(key, None)

    def delete(self, key: bytes) -> bool:
        """Delete a key; whether it was there."""
        self.ends_ms.pop(key, None)
        return self.values.pop(key, None) is not None

    def swept(self, key: bytes, value: Any) -> None:
        """Delete a key whose value has nothing left."""
        if not value:
            self.delete(key)

    def names(self) -> list[bytes]:
        """All keys that have not ended."""
        return [key for key in list(self.values) if self.get(key) is not None]

    def kind(self, key: bytes) -> bytes:
        """The name of the type of a key's value; none where there is none."""
        value = self.get(key)
        return b"none" if value is None else TYPES[type(value)]
