"""Checks of the options of an enqueue, one by one, where they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, get_args

from rqueue.errors import ConfigError
from rqueue.model.confirmation import check_confirmation
from rqueue.model.expect import expect, expect_number, shown
from rqueue.model.ids import check_id
from rqueue.model.names import check_group, check_key, check_share, refuse_control
from rqueue.model.parents import NAMED_MAX, OnFailure
from rqueue.model.sort_keys import check_sort_key
from rqueue.model.times import parse_duration
from rqueue.tasks.limits import limits_of
from rqueue.tasks.retry import check_limit, check_retry
from rqueue.tasks.shares import Share
from rqueue.tasks.unique import unique_of

__all__ = ["CHECKS"]

EARLIEST_MS = 10**12
"""The least due time, in 2001: what is less was meant in seconds, or as a delay."""


TTL_MOST = 315_360_000
"""The longest time to live, seconds: ten years."""


def _seconds(name: str, value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= 1e9:
        hint = _instead(value) if isinstance(value, str | timedelta) else ""
        raise ConfigError(name, f"{shown(value)} is not a positive number of seconds{hint}")
    return value


def _instead(value: str | timedelta) -> str:
    """The number to write for a duration in words."""
    try:
        return f"; write {parse_duration(value):g}"
    except ConfigError:
        return ""


def _mapping(name: str, mapping: Any, kinds: tuple[type, ...], what: str) -> Any:
    if not mapping:
        return mapping
    expect(name, mapping, Mapping, f"a dict whose names are text and whose values are {what}")
    for key, value in mapping.items():
        if type(key) is not str:
            raise ConfigError(name, f"the name {shown(key)} is not text")
        if type(value) not in kinds:
            raise ConfigError(name, f"the value of {shown(key)}, {shown(value)}, is not {what}")
        refuse_control(f"name in {name}", key)
    return mapping


def _is(kinds: type | tuple[type, ...], what: str) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        expect(name, value, kinds, what)
        return value

    return check


def _by(check: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A check that knows the option's name, and returns what is held."""
    return lambda _name, value: check(value)


def _priority(name: str, value: Any) -> Any:
    if type(value) is not int or not 0 <= value <= 9:
        raise ConfigError(name, f"{shown(value)} is no whole number from 0 to 9")
    return value


def _ms(least: int, since: str = "") -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        if type(value) is not int or not least <= value < 2**53:
            raise ConfigError(name, f"{shown(value)} is not a whole number of ms{since}")
        return value

    return check


def _attempts(name: str, value: Any) -> Any:
    check_limit(name, value)
    return value


def _ttl(name: str, value: Any) -> Any:
    _seconds(name, value)
    if value > TTL_MOST:
        raise ConfigError(name, f"{value:g} s is more than ten years")
    return value


def _wait(name: str, value: Any) -> Any:
    expect_number(name, value, "a number of seconds")
    return value


def _on_failure(name: str, value: Any) -> Any:
    if value not in get_args(OnFailure):
        raise ConfigError(name, f"{shown(value)} is none of 'stop', 'continue', 'wait'")
    return value


def _share(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return check_share(value)
    expect(name, value, Share, "text, or a Share")
    return value


def _confirmed(name: str, value: Any) -> Any:
    given: dict[str, Any] = {"replicas": None, "fsync": None, "confirm_ms": None, name: value}
    check_confirmation(**given)
    return value


def after_of(jobs: object) -> tuple[str, ...]:
    """The ids of jobs that are given as handles or ids. Raises ConfigError and InvalidName."""
    if isinstance(jobs, str | bytes) or not isinstance(jobs, Iterable):
        raise ConfigError("after", f"{shown(jobs)} is no list of jobs: handles, or ids")
    ids = tuple(check_id(job if isinstance(job, str) else _id_of(job)) for job in jobs)
    if not 0 < len(ids) <= NAMED_MAX or len({*ids}) < len(ids):
        raise ConfigError("after", f"{len(ids)} jobs: 1 to {NAMED_MAX} different ones")
    return ids


def _id_of(job: object) -> Any:
    return getattr(job, "id", job)


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "id": _by(check_id),
    "priority": _priority,
    "at_ms": _ms(EARLIEST_MS, " since 1970, of these years"),
    "delay_ms": _ms(0),
    "max_deliveries": _attempts,
    "max_crashes": _attempts,
    "retry": _by(check_retry),
    "time_limit": _seconds,
    "soft_time_limit": _seconds,
    "ttl": _ttl,
    "keep": _seconds,
    "headers": partial(_mapping, kinds=(str,), what="text"),
    "labels": partial(
        _mapping, kinds=(str, int, bool), what="text, a whole number, or True or False"
    ),
    "immediate": _is(bool, "True or False"),
    "mandatory": _is(bool, "True or False"),
    "group": _by(check_group),
    "key": _by(check_key),
    "hold": _is(bool, "True or False"),
    "front": _is(bool, "True or False"),
    "sort_key": _by(check_sort_key),
    "max_wait": _wait,
    "unique": _by(unique_of),
    "on_commit": _is((bool, str), "True, False or a database's name"),
    "after": _by(after_of),
    "on_failure": _on_failure,
    "limit": _by(limits_of),
    "share": _share,
    "replicas": _confirmed,
    "fsync": _confirmed,
    "confirm_ms": _confirmed,
}
"""Of an option and what is given for it: what is held. Raises ConfigError and InvalidName."""
