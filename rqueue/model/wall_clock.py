"""The instants at which a clock on a wall shows a time that a cron expression names.

Instants are s since the epoch. A clock skips some times, when it is put forward, and shows others
twice, when it is put back. An expression names *times* if neither its minutes nor its hours begin
with `*`: each of its times is one instant, the first of two, or the end of the gap that it falls
into. Any other expression goes by elapsed time: all instants at which the clock shows what it
names. Seconds make no difference (A-44).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from heapq import heappop, heappush

__all__ = ["instant_before", "instants_after"]

_SECOND = timedelta(seconds=1)


def instants_after(expression: str, zone: tzinfo, after: float) -> Iterator[int]:
    """The instants of an expression behind one, in order, each once."""
    times = _names_times(expression)
    waiting: list[int] = []
    seen = after
    for wall in _walls(expression, zone, after, forward=True):
        shown, earliest = _instants(wall, zone)
        if times:
            shown = [earliest]
        for instant in shown:
            heappush(waiting, instant)
        # no later time of the clock is an earlier instant
        while waiting and waiting[0] <= earliest:
            instant = heappop(waiting)
            if instant > seen:
                seen = instant
                yield instant
    while waiting:
        instant = heappop(waiting)
        if instant > seen:
            seen = instant
            yield instant


def instant_before(expression: str, zone: tzinfo, until: float) -> int | None:
    """The last instant of an expression up to one; None if there is none."""
    times = _names_times(expression)
    found: int | None = None
    for wall in _walls(expression, zone, until, forward=False):
        shown, earliest = _instants(wall, zone)
        if times:
            shown = [earliest]
        # no earlier time of the clock is a later instant than the last one of this time
        if found is not None and max([earliest, *shown]) <= found:
            break
        fitting = [instant for instant in shown if instant <= until]
        found = max([*fitting, *([] if found is None else [found])], default=None)
        if times and found is not None:
            break
    return found


def _names_times(expression: str) -> bool:
    minutes, hours = expression.split()[-5:-3]
    return not minutes.startswith("*") and not hours.startswith("*")


def _walls(expression: str, zone: tzinfo, instant: float, *, forward: bool) -> Iterator[datetime]:
    """The times of an expression as the clock shows them, from where the instant is; also those
    that it shows a second time before, or behind it."""
    from cronsim import CronSim

    here = datetime.fromtimestamp(instant // 1, zone)
    twice = abs(_offset(here.replace(fold=0)) - _offset(here.replace(fold=1)))
    bare = here.replace(tzinfo=None, fold=0)
    start = bare - twice - _SECOND if forward else bare + twice + _SECOND
    return iter(CronSim(expression, start, reverse=not forward))


def _offset(at: datetime) -> timedelta:
    return at.utcoffset() or timedelta()


def _instants(wall: datetime, zone: tzinfo) -> tuple[list[int], int]:
    """The instants at which the clock shows this time, and the first at which it shows this or
    a later one."""
    first, second = (
        wall.replace(tzinfo=zone, fold=fold).astimezone(UTC).timestamp() for fold in (0, 1)
    )
    if first < second:
        return [int(first), int(second)], int(first)
    if datetime.fromtimestamp(first, zone).replace(tzinfo=None, fold=0) == wall:
        return [int(first)], int(first)
    # a gap: the clock jumps behind `second`, and not behind `first`
    low, high = int(second), int(first)
    while high - low > 1:
        middle = (low + high) // 2
        shows = datetime.fromtimestamp(middle, zone).replace(tzinfo=None, fold=0)
        low, high = (low, middle) if shows > wall else (middle, high)
    return [], high
