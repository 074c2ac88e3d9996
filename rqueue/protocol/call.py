"""A prepared script call: what to send, and how to read the reply. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

Arg = str | bytes | int | float
R = TypeVar("R")


class ScriptCall(NamedTuple, Generic[R]):
    """One script, its queue's meta key (all others share its hash tag), its arguments and the
    reader of its reply. The sync and the asyncio client run the same calls.

    needs: policies that the queue takes on with this call, where it does not have them yet.
    """

    script: str
    key: str
    args: Sequence[Arg]
    read: Callable[[Any], R]
    needs: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, str]:
        """The keys that every script declares: `meta`, and `QueueKeys.guard`, which never exists.

        A cluster that moves a slot key by key answers TRYAGAIN, ASK or MOVED *before* a script
        begins where one declared key is there and another is not. With `meta` alone it would fail
        at the first key that has moved, half way, with what it has written.
        """
        return self.key, self.key[:-4] + "guard"


def text(value: bytes | str) -> str:
    """Text of a reply's element."""
    return value.decode() if isinstance(value, bytes) else value
