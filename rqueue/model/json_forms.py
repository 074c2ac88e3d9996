"""The scalar types that have a JSON form, each once: how it is written, and how it is read again.

A form is text, as RFC 3339 and ISO 8601 have it. `rqueue.model.envelope` writes it,
`rqueue.tasks.arguments` reads it by annotation, and positions of loops carry it with its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

from rqueue.text.escape import shown

__all__ = ["FORMS", "Form", "form_of", "typed", "untyped"]


class Form(NamedTuple):
    """One type. write raises ValueError for a value without a form, read for what is no such
    text."""

    type: type
    name: str
    write: Callable[[Any], str]
    read: Callable[[Any], Any]


_DATE, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_WHOLE_DATETIME = re.compile(rf"{_DATE}[Tt ]{_TIME}([Zz]|[+-]\d\d:\d\d(:\d\d)?)?")
_WHOLE_DATE, _WHOLE_TIME = re.compile(_DATE), re.compile(_TIME)
_WHOLE_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_WHOLE_DURATION = re.compile(
    r"([+-]?)P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?"
)


def _text(value: Any, pattern: re.Pattern[str], what: str) -> str:
    if type(value) is not str or not pattern.fullmatch(value):
        raise ValueError(f"expected {what}")
    return value


def _datetime(value: Any) -> datetime:
    text = _text(value, _WHOLE_DATETIME, "a date and time as 2030-01-31T12:00:00Z")
    return datetime.fromisoformat(text.upper())


def _date(value: Any) -> date:
    return date.fromisoformat(_text(value, _WHOLE_DATE, "a date as 2030-01-31"))


def _time(value: Any) -> time:
    return time.fromisoformat(_text(value, _WHOLE_TIME, "a time as 12:00:00"))


def _duration(value: Any) -> timedelta:
    text = _text(value, _WHOLE_DURATION, "a duration as P1DT2.5S")
    found = _WHOLE_DURATION.fullmatch(text)
    assert found is not None
    sign, weeks, days, hours, minutes, seconds = found.groups(default="0")
    whole, _, part = seconds.partition(".")
    try:
        length = timedelta(
            weeks=int(weeks), days=int(days), hours=int(hours), minutes=int(minutes),
            seconds=int(whole), microseconds=int(part.ljust(6, "0")),
        )  # fmt: skip
        return -length if sign == "-" else length
    except OverflowError:
        raise ValueError("expected a duration of at most 999999999 days") from None


def _duration_text(value: timedelta) -> str:
    sign, length = ("-", -value) if value < timedelta(0) else ("", value)
    days, seconds = length.days, length.seconds
    part = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    clock = f"T{seconds}{part}S" if seconds or part or not days else ""
    return f"{sign}P{f'{days}D' if days else ''}{clock}"


def _time_text(value: time) -> str:
    if value.tzinfo is not None:
        raise ValueError("a time with a time zone")
    return value.isoformat()


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(str(value))
    return str(value)


def _decimal(value: Any) -> Decimal:
    if type(value) in (str, int) or (type(value) is float and isfinite(value)):
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            return number
    raise ValueError("expected a decimal number, as text")


def _uuid(value: Any) -> UUID:
    return UUID(_text(value, _WHOLE_UUID, "a UUID"))


def _path_of(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError("expected a path, as text")
        return kind(value)

    return read


FORMS = (
    # a datetime is a date too: the first that fits is meant
    Form(datetime, "datetime", datetime.isoformat, _datetime),
    Form(date, "date", date.isoformat, _date),
    Form(time, "time", _time_text, _time),
    Form(timedelta, "timedelta", _duration_text, _duration),
    Form(UUID, "uuid", str, _uuid),
    Form(Decimal, "decimal", _decimal_text, _decimal),
    Form(PurePath, "path", str, _path_of(PurePath)),
)
"""Read by the envelope, by readers of arguments, and by positions of loops."""


def form_of(kind: type) -> Form | None:
    """The form of a type; None if it has none. A path is read as the class that is asked for."""
    if issubclass(kind, PurePath):
        return Form(kind, "path", str, _path_of(kind))
    return _BY_TYPE.get(kind)


_BY_TYPE: dict[type, Form] = {form.type: form for form in FORMS}


# -- with their types ------------------------------------------------------------------------------


def typed(value: Any) -> Any:
    """A value as JSON that says its types: `{"$date": "2030-01-31"}`, `{"$tuple": [1, "a"]}`.
    Raises ValueError if it has no such form."""
    kind = type(value)
    if value is None or kind in (bool, str) or (kind is int and -(2**63) <= value < 2**64):
        return value
    if kind is float and isfinite(value):
        return value
    if kind is list:
        return [typed(one) for one in value]
    if kind is tuple:
        return {"$tuple": [typed(one) for one in value]}
    if kind is dict and all(type(key) is str and key[:1] != "$" for key in value):
        return {key: typed(one) for key, one in value.items()}
    form = _BY_TYPE.get(kind)
    if form is None or (kind is Decimal and not value.is_finite()):
        raise ValueError(f"{shown(value)} has no JSON form that comes back as {kind.__name__}")
    return {f"${form.name}": form.write(value)}


def untyped(value: Any) -> Any:
    """The value that `typed` was given."""
    if type(value) is list:
        return [untyped(one) for one in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        (key, said), *_ = value.items()
        if key == "$tuple":
            return tuple(untyped(one) for one in said)
        if key in _BY_TAG:
            return _BY_TAG[key].read(said)
    return {key: untyped(one) for key, one in value.items()}


_BY_TAG = {f"${form.name}": form for form in FORMS}
