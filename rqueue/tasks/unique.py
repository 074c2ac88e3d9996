"""Which jobs of a task are one: the option `unique`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Literal

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.times import parse_duration
from rqueue.model.unique_key import Conflict, UniqueKey, digest_of

__all__ = ["Unique", "unique_of"]

PERIOD_MOST = 31_536_000
"""The longest period, seconds: a year."""

CONFLICTS = ("existing", "raise")

Until = Literal["end", "start"] | timedelta | float | str


class Unique:
    """Of the calls of a task that are alike there is one job at a time.

    names: the arguments that tell calls apart, by the names of the task's parameters; none: all of
    them. key: instead of names, a text, or a function of the call's arguments (as attributes) that
    returns one, or anything else that is JSON. until: how long the job keeps others away: until it
    has "end"ed (the default), that is while it waits, runs or is to be tried again; until its
    "start", when a consumer takes it; or for a time from its enqueue (a timedelta, seconds, or text
    as "1h"), while it lives and, where it is done before, for the rest of that time. on_conflict:
    what the enqueue of another one does: it answers with the "existing" job (the default), or
    "raise"s DuplicateJob. Calls of different tasks are never alike.

    Raises ConfigError.
    """

    __slots__ = ("key", "names", "on_conflict", "until")

    names: tuple[str, ...]
    key: str | Callable[[Any], Any] | None
    until: Literal["end", "start"] | int
    on_conflict: Conflict

    def __init__(
        self,
        *names: str,
        key: str | Callable[[Any], Any] | None = None,
        until: Until = "end",
        on_conflict: Conflict = "existing",
    ) -> None:
        for name in names:
            expect("unique", name, str, "the name of an argument")
        if key is not None and not isinstance(key, str) and not callable(key):
            raise ConfigError("unique", f"the key {shown(key)} is neither a text nor a function")
        if key is not None and names:
            raise ConfigError("unique", "calls are told apart by a key or by arguments, not both")
        if on_conflict not in CONFLICTS:
            raise ConfigError("on_conflict", f"{shown(on_conflict)} is none of existing, raise")
        self.names = names
        self.key = key
        self.until = _until(until)
        self.on_conflict = on_conflict

    def of_call(self, task: str, arguments: Mapping[str, Any]) -> UniqueKey:
        """The key of a call with these arguments. Raises ConfigError, NotEncodable, and what a
        function for the key raises."""
        return UniqueKey(self._key(task, arguments), self.until, self.on_conflict)

    def _key(self, task: str, arguments: Mapping[str, Any]) -> str:
        if callable(self.key):
            return digest_of(task, [self.key(SimpleNamespace(**arguments))])
        if self.key is not None:
            return digest_of(task, [self.key])
        if not self.names:
            return digest_of(task, arguments)
        if missing := [name for name in self.names if name not in arguments]:
            raise ConfigError("unique", f"this call of '{task}' names no argument '{missing[0]}'")
        return digest_of(task, {name: arguments[name] for name in self.names})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unique):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.names, self.key, self.until, self.on_conflict))

    def __repr__(self) -> str:
        said = [repr(name) for name in self.names]
        said += [f"key={self.key!r}"] if self.key is not None else []
        return f"Unique({', '.join([*said, f'until={self.until!r}'])})"


def _until(given: object) -> Literal["end", "start"] | int:
    if given == "end":
        return "end"
    if given == "start":
        return "start"
    if isinstance(given, str | timedelta | int | float) and not isinstance(given, bool):
        seconds = parse_duration(given, "until")
        if 0 < seconds <= PERIOD_MOST:
            return max(1, round(seconds * 1000))
        raise ConfigError("until", f"{shown(given)} is not a time of at most a year")
    raise ConfigError("until", f"{shown(given)} is neither 'end', nor 'start', nor a time")


def unique_of(given: object) -> Unique | UniqueKey | Literal[False] | None:
    """The option as it is given to a task or a call. Raises ConfigError."""
    if given is True:
        return Unique()
    if given is None or given is False or isinstance(given, Unique | UniqueKey):
        return given
    if isinstance(given, str):
        raise ConfigError("unique", f"pass Unique({given!r}) to tell calls apart by that argument")
    raise ConfigError("unique", f"{shown(given)} is neither True nor a Unique")
