"""Which limits the calls of a task name: the option `limit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.job_limit import JobLimit, check_limits, check_most
from rqueue.model.names import MAX_GROUP, check_name_of_limit

__all__ = ["Concurrency", "Limit", "argument_of", "limited", "limits_of", "texts_of"]


class Concurrency:
    """At most so many jobs at a time, of those in one queue that name this limit.

    most: how many; an operator may say otherwise (`queue.limits.set`, `rqueue limits set`). key:
    the limit is one for each value of an argument: its name, "tenant" or "account.id", or a
    function of the call's arguments (as attributes); a text, a whole number or anything else with a
    plain `str`. name: what the limit is called; jobs of several tasks share it by that. None: as
    the task. A job has its permit while it may be taken and while it runs; one that waits to be
    tried again, or is scheduled, has none.

    Raises ConfigError and InvalidName.
    """

    __slots__ = ("key", "most", "name")

    def __init__(
        self,
        most: int,
        key: str | Callable[[Any], Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        check_most(most)
        if key is not None and not callable(key):
            expect("key", key, str, "the name of an argument, or a function")
        if name is not None:
            check_name_of_limit(name)
        self.most = most
        self.key = key
        self.name = name

    def of_call(self, task: str, arguments: Mapping[str, Any]) -> JobLimit:
        """The limit that a call with these arguments names. Raises ConfigError, InvalidName, and
        what a function for the key raises."""
        return JobLimit(self.name or task, self.most, self._key(task, arguments)).check()

    def _key(self, task: str, arguments: Mapping[str, Any]) -> str:
        if self.key is None:
            return ""
        if callable(self.key):
            value = self.key(SimpleNamespace(**arguments))
        else:
            first, *attributes = self.key.split(".")
            if first not in arguments:
                raise ConfigError("limit", f"this call of '{task}' names no argument '{first}'")
            value = arguments[first]
            for name in attributes:
                value = value[name] if isinstance(value, Mapping) else getattr(value, name)
        text = str(value)
        if not text:
            raise ConfigError("limit", f"the key of '{task}' is empty")
        if len(text.encode("utf-8", "replace")) <= MAX_GROUP // 2:
            return text
        return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Concurrency):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.most, self.key, self.name))

    def __repr__(self) -> str:
        said = [repr(self.most)]
        said += [f"key={self.key!r}"] if self.key is not None else []
        said += [f"name={self.name!r}"] if self.name is not None else []
        return f"Concurrency({', '.join(said)})"


Limit = Concurrency | JobLimit


def limits_of(given: object) -> tuple[Limit, ...]:
    """The option as it is given to a task or a call. Raises ConfigError."""
    if given is None:
        return ()
    some = (given,) if isinstance(given, Limit) else given
    if not isinstance(some, Sequence) or isinstance(some, str | bytes):
        hint = "; seconds are `time_limit`" if isinstance(given, int | float) else ""
        raise ConfigError("limit", f"{shown(given)} is no Concurrency, nor a list of such{hint}")
    for one in some:
        if not isinstance(one, Limit):
            raise ConfigError("limit", f"{shown(one)} is no Concurrency")
    named = tuple(some)
    check_limits(tuple(one for one in named if isinstance(one, JobLimit)))
    return named


def limited(
    limits: Sequence[Limit], task: str, arguments: Mapping[str, Any]
) -> tuple[JobLimit, ...]:
    """What a call of this task with these arguments names. Raises ConfigError, InvalidName."""
    named = tuple(
        one.of_call(task, arguments) if isinstance(one, Concurrency) else one for one in limits
    )
    check_limits(named)
    return named


def argument_of(limit: Limit) -> tuple[str, ...]:
    """The argument that a call must have for the key of this limit, if one."""
    key = limit.key if isinstance(limit, Concurrency) else None
    return (key.partition(".")[0],) if isinstance(key, str) else ()


def texts_of(limits: Sequence[Limit]) -> tuple[str, ...]:
    """Of the limits that a job names: as its terms have them."""
    return tuple(one.text for one in limits if isinstance(one, JobLimit))
