"""Ticks of random expressions, against a clock whose minutes are counted on the wall."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from rqueue.model.schedule import Timing
from rqueue.model.wall_clock import instant_before, instants_after
from tests.support.profiles import examples

ZONES = [
    "Europe/Berlin", "America/New_York", "America/Santiago", "America/Havana", "Asia/Beirut",
    "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/St_Johns",
    "Atlantic/Azores", "Antarctica/Troll", "Asia/Kathmandu", "UTC",
]  # fmt: skip
"""With changes of an hour, half an hour and two, at midnight, of a whole day, and without any."""

MINUTE = 60
ASIDE = 40 * 3600
"""Seconds that are looked at on both sides of a change."""


def changes(zone: ZoneInfo, year: int) -> list[int]:
    """The instants of a year, to the minute, at which a zone's clocks are changed."""
    start = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    found = []
    for day in range(start, start + 366 * 86_400, 86_400):
        if _offset(zone, day) != _offset(zone, day + 86_400):
            low, high = day, day + 86_400
            while high - low > MINUTE:
                middle = (low + high) // (2 * MINUTE) * MINUTE
                low, high = (low, middle) if _offset(zone, middle) != _offset(zone, low) else (
                    middle, high,
                )  # fmt: skip
            found.append(high)
    return found


def _offset(zone: ZoneInfo, instant: int) -> timedelta | None:
    return datetime.fromtimestamp(instant, zone).utcoffset()


@st.composite
def fields(draw: st.DrawFn, most: int, step: bool = True) -> tuple[str, set[int]]:
    """A field, and the numbers that it names."""
    kind = draw(st.sampled_from(["*", "one", "list", "range", *(["step"] if step else [])]))
    everything = set(range(most + 1))
    if kind == "*":
        return "*", everything
    if kind == "step":
        by = draw(st.sampled_from([2, 3, 5, 7, 10, 15, 20, 30]))
        return f"*/{by}", set(range(0, most + 1, by))
    if kind == "range":
        low = draw(st.integers(0, most))
        high = draw(st.integers(low, most))
        return f"{low}-{high}", set(range(low, high + 1))
    some = draw(st.sets(st.integers(0, most), min_size=1, max_size=1 if kind == "one" else 4))
    return ",".join(map(str, sorted(some))), some


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    year = draw(st.integers(1985, 2035))
    moments = [*changes(zone, year), int(datetime(year, 2, 28, 12, tzinfo=UTC).timestamp())]
    middle = draw(st.sampled_from(moments))
    minute, hour = draw(fields(59)), draw(fields(23))
    day = draw(st.sampled_from(["*", "near"]))
    near = datetime.fromtimestamp(middle, zone).day
    days = set(range(1, 32)) if day == "*" else {near}
    weekday, weekdays = draw(fields(6, step=False)) if day == "*" else ("*", set(range(7)))
    second = draw(st.sampled_from(["", "0", "15"]))
    text = f"{second} {minute[0]} {hour[0]} {'*' if day == '*' else near} * {weekday}".strip()
    return {
        "zone": zone, "middle": middle, "text": text, "second": int(second or 0),
        "minutes": minute[1], "hours": hour[1], "days": days, "weekdays": weekdays,
        "times": not minute[0].startswith("*") and not hour[0].startswith("*"),
    }  # fmt: skip


def counted(case: dict[str, Any]) -> list[int]:
    """The ticks around the middle, by looking at each minute."""
    zone, middle = case["zone"], case["middle"] // MINUTE * MINUTE
    real = range(middle - ASIDE, middle + ASIDE, MINUTE)
    wall = [datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0) for at in real]

    def named(at: datetime) -> bool:
        weekday = at.isoweekday() % 7
        return (
            at.minute in case["minutes"]
            and at.hour in case["hours"]
            and at.day in case["days"]
            and weekday in case["weekdays"]
        )

    aside = case["second"]
    if not case["times"]:
        return [at + aside for at, shows in zip(real, wall, strict=True) if named(shows)]
    first = {shows: at for at, shows in reversed(list(zip(real, wall, strict=True)))}
    ticks, shows = set(), wall[0]
    while shows <= wall[-1]:
        if named(shows):
            if shows in first:
                ticks.add(first[shows] + aside)
            else:  # skipped: the first instant at which the clock shows more
                ticks.add(next(at for at, later in zip(real, wall, strict=True) if later > shows))
        shows += timedelta(minutes=1)
    return sorted(ticks)


@settings(max_examples=examples(150, 3000), deadline=None)
@given(case=cases(), data=st.data())
def test_ticks_are_the_minutes_that_the_clock_shows(
    case: dict[str, Any], data: st.DataObject
) -> None:
    ticks = counted(case)
    low, high = case["middle"] - ASIDE + 30 * 3600, case["middle"] + ASIDE - 30 * 3600
    at = data.draw(st.integers(low, high) | st.sampled_from([*ticks, case["middle"]]), label="at")
    if not low <= at <= high:
        return
    text, zone = case["text"], case["zone"]
    expected = [tick for tick in ticks[bisect_right(ticks, at) :] if tick <= high]
    found = []
    for tick in instants_after(text, zone, at):
        if tick > high:
            break
        found.append(tick)
    assert found == expected
    before = instant_before(text, zone, at)
    known = ticks[: bisect_right(ticks, at)]
    if known and known[-1] > low:
        assert before == known[-1]
    elif before is not None:
        assert before <= low or before in known


def test_six_fields_are_five() -> None:
    for minute, hour in (("30", "2"), ("15", "1,2"), ("*/20", "2"), ("0", "0")):
        for zone in ZONES:
            five = Timing.of(cron=f"{minute} {hour} * * *", tz=zone)
            six = Timing.of(cron=f"0 {minute} {hour} * * *", tz=zone)
            start = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp()) * 1000
            assert five.after(start, 400) == six.after(start, 400)


def test_a_rare_day_is_not_left_out_for_a_year() -> None:
    timing = Timing.of(cron="0 30 2 31 3 *", tz="Europe/Berlin")  # clocks are changed that day
    start = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp()) * 1000
    first, second = timing.after(start, 2)
    assert datetime.fromtimestamp(first / 1000, UTC) == datetime(2030, 3, 31, 1, tzinfo=UTC)
    assert datetime.fromtimestamp(second / 1000, UTC) == datetime(2031, 3, 31, 0, 30, tzinfo=UTC)
    assert timing.last(start, first) == first
