"""Prepared calls: what to send, and how to read the reply. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from rqueue.model.confirmation import Confirmation

Arg = str | bytes | int | float
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ScriptCall(NamedTuple, Generic[R]):
    """One script, its queue's meta key (all others share its hash tag), its arguments and the
    reader of its reply. The sync and the asyncio client run the same calls.

    needs: policies that the queue takes on with this call, where it does not have them yet. adapt:
    the arguments for a queue with these policies, where they depend on those. confirm: what the
    client waits for once the script has run; its answer says what is missing then.
    """

    script: str
    key: str
    args: Sequence[Arg]
    read: Callable[[Any], R]
    needs: tuple[str, ...] = ()
    adapt: Callable[[Sequence[str], Sequence[Arg]], Sequence[Arg]] | None = None
    confirm: Confirmation | None = None

    def args_for(self, policies: Sequence[str]) -> Sequence[Arg]:
        """The arguments for a queue with these policies. Raises ConfigError where the queue's kind
        cannot take them."""
        return self.args if self.adapt is None else self.adapt(policies, self.args)

    @property
    def keys(self) -> tuple[str, str]:
        """The keys that every script declares: `meta`, and `QueueKeys.guard`, which never exists.

        A cluster that moves a slot key by key answers TRYAGAIN, ASK or MOVED *before* a script
        begins where one declared key is there and another is not. With `meta` alone it would fail
        at the first key that has moved, half way, with what it has written.
        """
        return self.key, self.key[:-4] + "guard"


class CommandCall(NamedTuple, Generic[R_co]):
    """A question that Redis's own commands answer, without a script.

    `key`: the queue's meta key, with which all keys of the commands share the hash tag; "" where
    the server itself is asked. `commands`: none ask nothing, and `read` gets no reply. `read`:
    reads the replies, in their order, in the forms of redis-py and raw. `one_moment`: the replies
    to several commands have to be of one moment: they are one transaction.
    """

    key: str
    commands: Sequence[tuple[Arg, ...]]
    read: Callable[[Sequence[Any]], R_co]
    one_moment: bool = True

    def sent(self) -> list[tuple[Arg, ...]]:
        """The commands as they go out: names of keys, and ids, may hold bytes that are no UTF-8."""
        return [
            tuple(
                [
                    name,
                    *(
                        word.encode("utf-8", "surrogateescape") if isinstance(word, str) else word
                        for word in words
                    ),
                ]
            )
            for name, *words in self.commands
        ]


def text(value: bytes | str) -> str:
    """Text of a reply's element."""
    return value.decode() if isinstance(value, bytes) else value
