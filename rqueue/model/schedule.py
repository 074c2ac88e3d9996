"""When a periodic job is enqueued: cron expressions in a time zone, or an interval.

Instants are ms since the epoch: nothing local is stored. A cron expression has five fields, as
Debian's cron reads them (cronsim), or six with seconds in front, or is a word such as `@daily`;
`rqueue.model.wall_clock` says what happens when clocks are changed. An interval counts real time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from heapq import merge
from itertools import islice, pairwise
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.expect import expect, shown
from rqueue.model.names import refuse_control
from rqueue.model.times import parse_duration
from rqueue.model.wall_clock import instant_before, instants_after

__all__ = ["AHEAD", "AHEAD_MS", "MOST", "Missed", "Overlap", "Timing", "check_schedule"]

Missed = Literal["last", "skip", "all"]
"""Which ticks become jobs late, where nobody looked in time: the last one, none, or all within the
window."""

Overlap = Literal["allow", "skip", "queue"]
"""Whether a tick becomes a job while the job of the tick before waits or runs: yes, no, or when
that has ended."""

AHEAD, AHEAD_MS = 16, 900_000
"""Ticks that are computed ahead: at least so many, and those of so long a time. Two renewals of a
lease of twenty minutes are in it."""

MOST = 2000
"""Ticks known ahead, at the most: `RECORD_MOST` of the scripts."""

MOST_NAME = 180
"""Bytes of a schedule's name: a job's id is the name, `@`, and the tick."""

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

LEAST_EVERY_MS = 1000
LONGEST_MS = 315_360_000_000
GRACE_MOST_MS = 60_000


def check_schedule(name: str) -> str:
    """Return `name` when it may name a schedule: 1 to 180 bytes of UTF-8, no control characters.

    Raises InvalidName.
    """
    if not isinstance(name, str):
        raise InvalidName("schedule", name, f"must be a str, not {type(name).__name__}")
    if not name:
        raise InvalidName("schedule", name, "is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidName("schedule", name, "has a lone surrogate: no UTF-8") from None
    if size > MOST_NAME:
        raise InvalidName("schedule", name, f"has {size} bytes; at most {MOST_NAME} fit")
    return refuse_control("schedule", name)


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule ticks, and what becomes of ticks. Times are in ms.

    cron: expressions, whose instants all count. every_ms: an interval instead; 0 = none. tz: the
    time zone of the expressions. jitter_ms: each job is due up to so much later, by its id.
    window_ms: how old a missed tick may be that still becomes a job, with missed="all".
    """

    cron: tuple[str, ...] = ()
    every_ms: int = 0
    tz: str = "UTC"
    missed: Missed = "last"
    overlap: Overlap = "allow"
    jitter_ms: int = 0
    window_ms: int = 86_400_000

    @classmethod
    def of(
        cls,
        cron: str | Sequence[str] | None = None,
        every: timedelta | float | str | None = None,
        tz: str | ZoneInfo = "UTC",
        missed: Missed = "last",
        overlap: Overlap = "allow",
        jitter: timedelta | float | str = 0,
        window: timedelta | float | str = "1d",
    ) -> Timing:
        """The timing that is given in words. Raises ConfigError."""
        if cron is None and every is None:
            raise ConfigError("cron", "a schedule has cron=, or every=")
        return cls().changed(cron, every, tz, missed, overlap, jitter, window)

    def changed(
        self,
        cron: str | Sequence[str] | None = None,
        every: timedelta | float | str | None = None,
        tz: str | ZoneInfo | None = None,
        missed: Missed | None = None,
        overlap: Overlap | None = None,
        jitter: timedelta | float | str | None = None,
        window: timedelta | float | str | None = None,
    ) -> Timing:
        """The same with other words; None = as it is. Raises ConfigError."""
        if cron is not None and every is not None:
            raise ConfigError("cron", "a schedule has either cron= or every=")
        new = self
        if cron is not None:
            new = replace(new, cron=_expressions(cron), every_ms=0)
        if every is not None:
            new = replace(new, cron=(), every_ms=_ms("every", every, LEAST_EVERY_MS))
        if isinstance(tz, ZoneInfo):
            # one that was read from a file has no name
            tz = tz.key or str(tz)
        if tz is not None:
            _zone(tz)
            if new.every_ms and tz != "UTC":
                raise ConfigError("tz", "an interval goes by real time: it has no time zone")
            new = replace(new, tz=tz)
        if missed is not None:
            new = replace(new, missed=_word("missed", missed, get_args(Missed)))
        if overlap is not None:
            new = replace(new, overlap=_word("overlap", overlap, get_args(Overlap)))
        if jitter is not None:
            new = replace(new, jitter_ms=_ms("jitter", jitter))
        if window is not None:
            new = replace(new, window_ms=_ms("window", window))
        if new.every_ms and new.jitter_ms >= new.every_ms:
            raise ConfigError("jitter", "it is no less than the interval: jobs would pass others")
        if new.missed == "all" and not new.window_ms:
            raise ConfigError("window", "of no time none is made up for: missed='skip' says so")
        if not new.after(0, 1):
            raise ConfigError("cron", f"there is no such time: {', '.join(new.cron)}")
        return new

    # -- instants ----------------------------------------------------------------------------------

    def after(self, ms: int, count: int = AHEAD) -> list[int]:
        """The next ticks after an instant; of an interval, those that follow where it is a tick."""
        if self.every_ms:
            return [ms + n * self.every_ms for n in range(1, count + 1)]
        return list(islice(self._instants(ms), count))

    def ahead(self, ms: int, until: int) -> list[int]:
        """The ticks after an instant that are to be known until another one, `AHEAD` at least."""
        if self.every_ms:
            return self.after(ms)
        known: list[int] = []
        for at in self._instants(ms):
            if at > until and len(known) >= AHEAD:
                break
            known.append(at)
        return known

    def last(self, behind: int, now: int) -> int:
        """The last tick up to `now` of those that follow the tick `behind`; that one, where none
        has."""
        if self.every_ms:
            return behind + max(0, now - behind) // self.every_ms * self.every_ms
        found = (instant_before(one, _zone(self.tz), now / 1000) for one in self._fields)
        return max([behind, *(at * 1000 for at in found if at is not None)])

    @property
    def _fields(self) -> Iterator[str]:
        """The expressions, with fields in place of words."""
        return (WORDS.get(expression, expression) for expression in self.cron)

    def _instants(self, ms: int) -> Iterator[int]:
        before = ms
        for at in merge(*(instants_after(one, _zone(self.tz), ms / 1000) for one in self._fields)):
            if at * 1000 > before:
                before = at * 1000
                yield before

    def refilled(self, nexts: Sequence[int], after: int, now: int) -> list[int]:
        """The ticks to be known at `now`, if those known are `nexts`, and the fate of the ticks up
        to `after` is decided.

        If all known ticks have passed, the last one that passed unknown is added; with missed="all"
        all of them, from the beginning of the window on.
        """
        behind = nexts[-1] if nexts else after or now
        if self.missed == "all":
            behind = last = self.last(behind, now - self.window_ms - 1)
        else:
            last = self.last(behind, now)
        passed = [last] if last > behind else []
        return [*nexts, *passed, *self.ahead(last, max(now, last) + AHEAD_MS)][:MOST]

    def grace_ms(self, now: int) -> int:
        """How late a tick may be with missed="skip": half an interval, at most a minute."""
        ticks = self.after(now)
        gaps = [later - at for at, later in pairwise(ticks)]
        return min((*gaps, 2 * GRACE_MOST_MS)) // 2

    def local(self, ms: int) -> datetime:
        """An instant in the time zone of the expressions."""
        return datetime.fromtimestamp(ms / 1000, _zone(self.tz))

    # -- as it is stored ---------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The timing as JSON."""
        return dumps(asdict(self)).decode()

    @classmethod
    def parse(cls, text: str) -> Timing:
        """The timing whose text this is. Raises ConfigError."""
        try:
            said: dict[str, Any] = loads(text)
            return cls(**{**said, "cron": tuple(said["cron"])})
        except (JSONDecodeError, TypeError, KeyError):
            raise ConfigError("schedule", f"{shown(text)} is no timing of this release") from None

    def __str__(self) -> str:
        if self.every_ms:
            return f"every {_interval(self.every_ms)}"
        return f"{' | '.join(self.cron)} ({self.tz})"


def _word(setting: str, value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ConfigError(setting, f"{shown(value)} is none of {', '.join(known)}")
    return value


def _ms(setting: str, value: timedelta | float | str, least: int = 0) -> int:
    ms = round(parse_duration(value, setting) * 1000)
    if not least <= ms <= LONGEST_MS:
        raise ConfigError(setting, f"{shown(value)} is not from {least / 1000:g} s to ten years")
    return ms


def _zone(name: str) -> tzinfo:
    expect("tz", name, str, "the name of a time zone, such as Europe/Berlin")
    if name == "UTC":
        # this one needs no table
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "such as Europe/Berlin (where the system has no table, install tzdata)"
        raise ConfigError("tz", f"no time zone {shown(name)}; a name {hint}") from None


def _expressions(cron: str | Sequence[str]) -> tuple[str, ...]:
    given = (cron,) if isinstance(cron, str) else cron
    expect("cron", given, (list, tuple), "a cron expression, or a list of some")
    if not 1 <= len(given) <= 20:
        raise ConfigError("cron", f"{len(given)} expressions, where 1 to 20 fit")
    return tuple(_expression(text) for text in given)


def _expression(text: str) -> str:
    from cronsim import CronSim, CronSimError

    expect("cron", text, str, "a cron expression")
    expression = " ".join(text.split())
    if expression.startswith("@") and expression not in WORDS:
        raise ConfigError("cron", f"{shown(text)} is none of {', '.join(WORDS)}")
    fields = WORDS.get(expression, expression).split()
    if len(fields) not in (5, 6):
        raise ConfigError("cron", f"{shown(text)} has {len(fields)} fields: {_HOW}")
    try:
        CronSim(" ".join(fields), datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ConfigError("cron", _wrong(text, fields, str(error))) from None
    return expression


_HOW = (
    "write five (minute, hour, day of the month, month, day of the week), six with the seconds in"
    f" front, or one of {', '.join(WORDS)}"
)

_RANGES = {
    "second": "seconds go from 0 to 59",
    "minute": "minutes go from 0 to 59",
    "hour": "hours go from 0 to 23",
    "day-of-month": "days of the month go from 1 to 31, and L is the last one",
    "month": "months go from 1 to 12, or from JAN to DEC",
    "day-of-week": "days of the week go from 0 to 7, 0 and 7 are Sunday, or from SUN to SAT",
}


def _wrong(text: str, fields: list[str], said: str) -> str:
    """What is wrong with an expression of which cronsim said that."""
    from cronsim import CronSim, CronSimError

    any_month = [*fields[:-2], "*", fields[-1]]
    try:
        CronSim(" ".join(any_month), datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        pass
    else:
        if "day-of-month" in said:
            return f"{shown(text)}: this date never comes"
    for low, high in re.findall(r"(\d+)-(\d+)", text):
        if int(high) < int(low):
            return f"{shown(text)}: the range {low}-{high} ends before it begins; write two ranges"
    right = _RANGES.get(said.removeprefix("Bad ").strip(), "")
    return f"{shown(text)}: {said[:1].lower()}{said[1:]}" + (f": {right}" if right else "")


def _interval(ms: int) -> str:
    """An interval as people write it: 5m, 1h 30m, 1.5s."""
    parts = []
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m")):
        if ms >= size:
            parts.append(f"{ms // size}{unit}")
            ms %= size
    if ms:
        parts.append(f"{ms / 1000:g}s")
    return " ".join(parts)
