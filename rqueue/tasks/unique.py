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

__all__ = ["Debounce", "Throttle", "Unique", "unique_of"]

PERIOD_MOST = 31_536_000
"""The longest period, seconds: a year."""

CONFLICTS = ("existing", "raise", "replace")

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
    "raise"s DuplicateJob, or "replace"s the arguments of that one, which keeps its place, its time
    and its id; what is taken already cannot get others, so that "replace" is until="start". Calls
    of different tasks are never alike.

    Raises ConfigError.
    """

    __slots__ = ("delay_ms", "key", "most_ms", "names", "on_conflict", "until")

    names: tuple[str, ...]
    key: str | Callable[[Any], Any] | None
    until: Literal["end", "start"] | int
    on_conflict: Conflict
    delay_ms: int
    most_ms: int

    def __init__(
        self,
        *names: str,
        key: str | Callable[[Any], Any] | None = None,
        until: Until | None = None,
        on_conflict: Literal["existing", "raise", "replace"] = "existing",
    ) -> None:
        for name in names:
            expect("unique", name, str, "the name of an argument")
        if key is not None and not isinstance(key, str) and not callable(key):
            raise ConfigError("unique", f"the key {shown(key)} is neither a text nor a function")
        if key is not None and names:
            raise ConfigError("unique", "calls are told apart by a key or by arguments, not both")
        if on_conflict not in CONFLICTS:
            known = ", ".join(CONFLICTS)
            raise ConfigError("on_conflict", f"{shown(on_conflict)} is none of {known}")
        self.names = names
        self.key = key
        replaces = on_conflict == "replace"
        if replaces and until not in (None, "start"):
            why = "a job that is taken gets no other arguments: 'replace' is until='start'"
            raise ConfigError("until", why)
        self.until = "start" if replaces else _until("end" if until is None else until)
        self.on_conflict = on_conflict
        self.delay_ms = self.most_ms = 0

    def of_call(self, task: str, arguments: Mapping[str, Any]) -> UniqueKey:
        """The key of a call with these arguments. Raises ConfigError, NotEncodable, and what a
        function for the key raises."""
        return UniqueKey(self._key(task, arguments), self.until, self.on_conflict, self.most_ms)

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
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in Unique.__slots__)

    def __repr__(self) -> str:
        said = [repr(name) for name in self.names]
        said += [f"key={self.key!r}"] if self.key is not None else []
        return f"{type(self).__name__}({', '.join([*said, f'until={self.until!r}'])})"


class Debounce(Unique):
    """A call waits, and each further one that is alike puts it off: the job runs when none came for
    `wait`, with the arguments of the last call.

    max_wait: how long after the first call it is due at the latest, however many come; None: it may
    be put off for ever. names, key: which calls are alike, as of `Unique`. A call while the job
    runs begins anew. Times are a timedelta, seconds, or text as "5s". Raises ConfigError.
    """

    __slots__ = ()

    def __init__(
        self,
        wait: timedelta | float | str,
        *names: str,
        key: str | Callable[[Any], Any] | None = None,
        max_wait: timedelta | float | str | None = None,
    ) -> None:
        super().__init__(*names, key=key, until="start")
        self.on_conflict = "debounce"
        self.delay_ms = _ms("wait", wait)
        if max_wait is not None:
            self.most_ms = _ms("max_wait", max_wait)
            if self.most_ms < self.delay_ms:
                raise ConfigError("max_wait", f"{shown(max_wait)} is less than {shown(wait)}")


class Throttle(Unique):
    """One job begins in each `period`: the first call is enqueued at once; of those that follow
    within the period the last one is, for when it is over.

    names, key: which calls are alike, as of `Unique`. The period is a timedelta, seconds, or text
    as "10s". Raises ConfigError.
    """

    __slots__ = ()

    def __init__(
        self,
        period: timedelta | float | str,
        *names: str,
        key: str | Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(*names, key=key)
        self.until = _ms("period", period)
        self.on_conflict = "throttle"


def _until(given: object) -> Literal["end", "start"] | int:
    if given == "end":
        return "end"
    if given == "start":
        return "start"
    if isinstance(given, str | timedelta | int | float) and not isinstance(given, bool):
        return _ms("until", given)
    raise ConfigError("until", f"{shown(given)} is neither 'end', nor 'start', nor a time")


def _ms(setting: str, given: timedelta | float | str) -> int:
    seconds = parse_duration(given, setting)
    if 0 < seconds <= PERIOD_MOST:
        return max(1, round(seconds * 1000))
    raise ConfigError(setting, f"{shown(given)} is not a time of at most a year")


def unique_of(given: object) -> Unique | UniqueKey | Literal[False] | None:
    """The option as it is given to a task or a call. Raises ConfigError."""
    if given is True:
        return Unique()
    if given is None or given is False or isinstance(given, Unique | UniqueKey):
        return given
    if isinstance(given, str):
        raise ConfigError("unique", f"pass Unique({given!r}) to tell calls apart by that argument")
    raise ConfigError("unique", f"{shown(given)} is neither True nor a Unique")
