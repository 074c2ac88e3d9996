"""Which limits the calls of a task name: the option `limit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.job_limit import LONGEST_MS, JobLimit, check_limits, check_most
from rqueue.model.names import MAX_GROUP, check_name_of_limit
from rqueue.model.times import parse_duration
from rqueue.tasks.other_words import AS_RATE, explained

__all__ = [
    "Concurrency",
    "Limit",
    "Rate",
    "arguments_of",
    "key_text",
    "limited",
    "limits_of",
    "rate_ms",
    "said_by",
    "texts_of",
]


class _OfCalls:
    """A limit of a task, of which each call names one by its arguments."""

    __slots__ = ("key", "most", "name")

    def __init__(self, most: int, key: str | Callable[[Any], Any] | None, name: str | None) -> None:
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

    @property
    def reads(self) -> tuple[str, ...]:
        """The arguments that a call must have."""
        return (self.key.partition(".")[0],) if isinstance(self.key, str) else ()

    def _key(self, task: str, arguments: Mapping[str, Any]) -> str:
        if self.key is None:
            return ""
        text = str(said_by(self.key, task, arguments))
        if not text:
            raise ConfigError("limit", f"the key of '{task}' is empty")
        return key_text(text)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        said = [repr(self.most)]
        said += [f"key={self.key!r}"] if self.key is not None else []
        return [*said, *([f"name={self.name!r}"] if self.name is not None else [])]


class Concurrency(_OfCalls):
    """At most so many jobs at a time, of those in one queue that name this limit.

    most: how many; an operator may say otherwise (`queue.limits.set`, `rqueue limits set`). key:
    the limit is one for each value of an argument: its name, "tenant" or "account.id", or a
    function of the call's arguments (as attributes); a text, a whole number or anything else with a
    plain `str`. name: what the limit is called; jobs of several tasks share it by that. None: as
    the task. A job has its permit while it may be taken and while it runs; one that waits to be
    tried again, or is scheduled, has none.

    Raises ConfigError and InvalidName.
    """

    __slots__ = ()

    def __init__(
        self,
        most: int,
        key: str | Callable[[Any], Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(most, key, name)


class Rate(_OfCalls):
    """At most so many jobs in a time, of those in one queue that name this rate: a token bucket.

    most: how many tokens the bucket gets in `per` ("1m", or seconds), one after the other; it
    begins full. burst: how many it holds, so that so many jobs may begin at once after a rest;
    None: `most`; 1: they begin one by one. cost: tokens that a job takes, a number, or where that
    is said: the name of an argument, or a function of the call's arguments; more than the bucket
    holds are all that it holds. key, name: as of `Concurrency`. A job pays when a worker takes it,
    for each attempt; one that is released before it began has paid.

    Raises ConfigError and InvalidName.
    """

    __slots__ = ("burst", "cost", "per_ms")

    @explained("limit", AS_RATE)
    def __init__(
        self,
        most: int,
        per: str | float | timedelta,
        key: str | Callable[[Any], Any] | None = None,
        *,
        burst: int | None = None,
        cost: int | str | Callable[[Any], Any] = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(most, key, name)
        self.per_ms = rate_ms(per)
        self.burst = 0 if burst is None else check_most(burst, what="the burst")
        if isinstance(cost, int):
            check_most(cost, least=0, what="the cost")
        elif not callable(cost):
            expect("cost", cost, str, "a number, the name of an argument, or a function")
        self.cost = cost

    def of_call(self, task: str, arguments: Mapping[str, Any]) -> JobLimit:
        """See `Concurrency`."""
        cost = self.cost if isinstance(self.cost, int) else said_by(self.cost, task, arguments)
        check_most(cost, least=0, what="the cost")
        limit = super().of_call(task, arguments)
        return limit._replace(per_ms=self.per_ms, burst=self.burst, cost=cost)

    @property
    def reads(self) -> tuple[str, ...]:
        """The arguments that a call must have."""
        cost = (self.cost.partition(".")[0],) if isinstance(self.cost, str) else ()
        return (*super().reads, *cost)

    def _parts(self) -> list[str]:
        most, *rest = super()._parts()
        said = [most, f"per={self.per_ms / 1000:g}", *rest]
        said += [f"burst={self.burst}"] if self.burst else []
        return [*said, *([f"cost={self.cost!r}"] if self.cost != 1 else [])]


def rate_ms(per: str | float | timedelta) -> int:
    """ms of the time of a rate. Raises ConfigError."""
    ms = round(parse_duration(per, "per") * 1000)
    if not 1 <= ms <= LONGEST_MS:
        raise ConfigError("per", f"{shown(per)}: a rate is one of 1 ms to 11 days")
    return ms


def key_text(text: str) -> str:
    """The text as a key, or in place of a long one a digest of it."""
    if len(text.encode("utf-8", "replace")) <= MAX_GROUP // 2:
        return text
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def said_by(
    where: str | Callable[[Any], Any],
    task: str,
    arguments: Mapping[str, Any],
    option: str = "limit",
) -> Any:
    """What the arguments of a call say there. Raises ConfigError, and what a function raises."""
    if callable(where):
        return where(SimpleNamespace(**arguments))
    first, *attributes = where.split(".")
    if first not in arguments:
        raise ConfigError(option, f"this call of '{task}' names no argument '{first}'")
    value = arguments[first]
    for name in attributes:
        value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    return value


Limit = Concurrency | Rate | JobLimit


def limits_of(given: object) -> tuple[Limit, ...]:
    """The option as it is given to a task or a call. Raises ConfigError."""
    if given is None:
        return ()
    some = (given,) if isinstance(given, Limit) else given
    if not isinstance(some, Sequence) or isinstance(some, str | bytes):
        hint = "; seconds are `time_limit`" if isinstance(given, int | float) else ""
        hint = f"; {AS_RATE}" if isinstance(given, str) and "/" in given else hint
        raise ConfigError(
            "limit", f"{shown(given)} is no Concurrency or Rate, nor a list of such{hint}"
        )
    for one in some:
        if not isinstance(one, Limit):
            raise ConfigError("limit", f"{shown(one)} is no Concurrency or Rate")
    named = tuple(some)
    check_limits(tuple(one for one in named if isinstance(one, JobLimit)))
    return named


def limited(
    limits: Sequence[Limit], task: str, arguments: Mapping[str, Any]
) -> tuple[JobLimit, ...]:
    """What a call of this task with these arguments names. Raises ConfigError, InvalidName."""
    named = tuple(
        one if isinstance(one, JobLimit) else one.of_call(task, arguments) for one in limits
    )
    check_limits(named)
    return named


def arguments_of(limit: Limit) -> tuple[str, ...]:
    """The arguments that a call must have for this limit."""
    return () if isinstance(limit, JobLimit) else limit.reads


def texts_of(limits: Sequence[Limit]) -> tuple[str, ...]:
    """Of the limits that a job names: as its terms have them."""
    return tuple(one.text for one in limits if isinstance(one, JobLimit))
