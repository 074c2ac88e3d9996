"""A prepared script call: what to send, and how to read the reply. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

Arg = str | bytes | int | float
R = TypeVar("R")


class Call(NamedTuple, Generic[R]):
    """One script, its queue's meta key (the only declared key: all others share its hash tag), its
    arguments and the reader of its reply. The sync and the asyncio client run the same calls."""

    script: str
    key: str
    args: Sequence[Arg]
    read: Callable[[Any], R]


def text(value: bytes | str) -> str:
    """Text of a reply's element."""
    return value.decode() if isinstance(value, bytes) else value
