"""Times, durations and sizes as people write them.

Durations read like `1.5s`, `10m`, `2h 30m`, or plain seconds; sizes like `64MB`, `1GiB`, or plain
bytes (KB, MB and GB are powers of 1024, as in Redis's own configuration).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from math import inf
from typing import NamedTuple

from rqueue.errors import ConfigError
from rqueue.logs import logger

__all__ = ["When", "parse_duration", "parse_moment", "parse_size", "parse_when"]

log = logger("rqueue")

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION_PART = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h|d|w)", re.IGNORECASE)
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgt]?)(i?b)?\s*", re.IGNORECASE)
_SIZE_FACTOR = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_LONGEST = 100 * 365 * 86400.0


def parse_duration(value: str | float | timedelta, setting: str = "duration") -> float:
    """Seconds of `1.5s`, `250ms`, `10m`, `2h 30m`, a number of seconds or a timedelta.

    Never negative, at most a hundred years. Raises ConfigError, which names `setting`.
    """
    seconds: float
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if -_LONGEST <= value <= _LONGEST else inf
    elif isinstance(value, str):
        if _NUMBER.fullmatch(value):
            seconds = float(value)
        else:
            seconds, end = 0.0, 0
            while end < len(value.rstrip()):
                part = _DURATION_PART.match(value, end)
                if part is None:
                    break
                seconds += float(part[1]) * _UNIT_SECONDS[part[2].lower()]
                end = part.end()
            if not end or end < len(value.rstrip()):
                raise ConfigError(
                    setting, f"{value!r} is no duration; write for instance 500ms, 1.5s, 10m, 2h"
                )
    else:
        raise ConfigError(setting, f"a duration is text or seconds, not {type(value).__name__}")
    if not 0 <= seconds <= _LONGEST:
        raise ConfigError(setting, f"{value!r} is negative, or longer than a hundred years")
    return seconds


def parse_size(value: str | int, setting: str = "size") -> int:
    """Bytes of `64MB`, `1.5GiB`, `512k` or a plain number. Raises ConfigError, naming `setting`."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ConfigError(setting, f"{value} is negative")
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ConfigError(setting, f"{value!r} is no size; write for instance 512KB, 64MB, 1GB")
    return int(float(match[1]) * _SIZE_FACTOR[match[2].lower()])


class When(NamedTuple):
    """A moment, or a delay from now by Redis's clock; the other one is None. In ms."""

    at_ms: int | None
    delay_ms: int | None


def parse_when(value: datetime | timedelta | float | str, setting: str = "when") -> When:
    """When a job is due: an aware datetime, Unix time in seconds, or a timedelta from now.

    Text is a duration from now (`10m`) or an ISO 8601 time with its zone. A datetime without a zone
    is refused: the worker's zone need not be the caller's. One that its zone's clocks pass over is
    what Python takes it for, as `timestamp()` says, with a warning in the log. Raises ConfigError,
    naming `setting`.
    """
    if isinstance(value, str):
        value = _time_of_text(value, setting)
    if isinstance(value, timedelta):
        delay = value.total_seconds()
        if not 0 <= delay <= _LONGEST:
            raise ConfigError(setting, f"{value} from now is past, or more than a century away")
        return When(None, round(delay * 1000))
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ConfigError(
                setting,
                f"{value} has no time zone; use datetime.now(timezone.utc) or .astimezone()",
            )
        _say_of_gap(value, setting)
        value = value.timestamp()
    if type(value) not in (int, float):
        raise ConfigError(setting, f"a datetime, timedelta or Unix time, not {value!r}")
    if not 1e9 <= value <= 1e11:
        raise ConfigError(
            setting, f"{value!r} is no Unix time of these years; for a delay pass a timedelta"
        )
    return When(round(value * 1000), None)


def _say_of_gap(time: datetime, setting: str) -> None:
    # what is written on a clock of summer time is not worth an error in the one night of a year;
    # cron's ticks do not fail either
    meant = datetime.fromtimestamp(time.timestamp(), time.tzinfo)
    if meant.replace(tzinfo=None, fold=0) != time.replace(tzinfo=None, fold=0):
        log.warning(
            "%s: %s does not exist in %s, whose clocks go forward then; it is taken for %s",
            setting,
            time.replace(tzinfo=None),
            time.tzinfo,
            meant,
        )


def parse_moment(value: datetime | float | str, setting: str) -> int:
    """A moment as `parse_when` reads it, in ms since the epoch. Raises ConfigError, also for a
    duration: it is from no known time on."""
    at_ms = parse_when(value, setting).at_ms
    if at_ms is None:
        raise ConfigError(setting, f"a time, not a duration: {value!r}")
    return at_ms


def _time_of_text(text: str, setting: str) -> datetime | timedelta:
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        pass  # then it is a duration, or wrong
    else:
        if time.tzinfo is None:
            utc = time.isoformat()
            raise ConfigError(
                setting, f"{text!r} says no time zone; write {utc}Z for UTC, or {utc}+02:00"
            )
        return time
    try:
        return timedelta(seconds=parse_duration(text, setting))
    except ConfigError:
        raise ConfigError(
            setting, f"{text!r} is neither a duration (10m) nor a time (2030-01-31T08:00:00+00:00)"
        ) from None
