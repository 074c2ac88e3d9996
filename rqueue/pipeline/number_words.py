"""Numbers for people: times, counts, shares, rates."""

from __future__ import annotations

from datetime import datetime

__all__ = ["count", "duration", "moment", "rate", "share"]


def duration(ms: float | None) -> str:
    """A time: 0.4 ms, 250 ms, 3.2 s, 45 s, 3 min 20 s, 2 h 5 min, 3 d 4 h; – for none."""
    if ms is None:
        return "–"
    if ms < 0:
        return f"-{duration(-ms)}"
    if ms < 1000:
        return f"{ms:.0f} ms" if ms >= 10 or ms == int(ms) else f"{ms:.1f} ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 10 and round(seconds, 1) % 1 else f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit, smaller, name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {name}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def count(number: float | None) -> str:
    """A whole number; – for none."""
    return "–" if number is None else f"{number:,.0f}"


def share(part: float | None) -> str:
    """A share as percent, with a digit where it is not whole; – for none."""
    if part is None:
        return "–"
    percent = part * 100
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    fine = 0 < percent < 10 or 90 < percent < 100
    return f"{percent:.1f} %" if fine else f"{percent:.0f} %"


def rate(per_second: float | None) -> str:
    """How often in a second, or in a minute or hour where it is seldom; – for none."""
    if per_second is None:
        return "–"
    if not per_second:
        return "0/s"
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        value = per_second * factor
        if value >= 1 or unit == "h":
            return f"{value:,.0f}/{unit}" if value >= 10 else f"{value:.1f}/{unit}"
    raise AssertionError("the last unit takes all")


def moment(iso: str | None) -> str:
    """A time of the document, to the second; – for none."""
    return "–" if iso is None else f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S}"
