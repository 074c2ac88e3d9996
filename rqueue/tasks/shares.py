"""Which share the calls of a task take their turns in: the option `share`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rqueue.errors import ConfigError
from rqueue.model.expect import expect
from rqueue.model.names import check_share
from rqueue.tasks.limits import key_text, said_by

__all__ = ["Share"]


class Share:
    """Of a task: each call takes its turn in the share that its arguments name.

    key: an argument's name, "tenant" or "account.id", or a function of the call's arguments (as
    attributes); a text, a whole number or anything else with a plain `str`. Those that are longer
    than 64 bytes are shortened to a digest. Raises ConfigError.
    """

    __slots__ = ("key",)

    def __init__(self, key: str | Callable[[Any], Any]) -> None:
        if not callable(key):
            expect("share", key, str, "the name of an argument, or a function")
        self.key = key

    def of_call(self, task: str, arguments: Mapping[str, Any]) -> str:
        """The share of a call with these arguments. Raises ConfigError, InvalidName, and what a
        function for the key raises."""
        text = str(said_by(self.key, task, arguments, "share"))
        if not text:
            raise ConfigError("share", f"the share of a call of '{task}' is empty")
        return check_share(key_text(text))

    @property
    def reads(self) -> tuple[str, ...]:
        """The arguments that a call must have."""
        return (self.key.partition(".")[0],) if isinstance(self.key, str) else ()

    def __eq__(self, other: object) -> bool:
        return other.key == self.key if isinstance(other, Share) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Share({self.key!r})"
