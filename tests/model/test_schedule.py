"""When schedules tick: cron expressions, time zones, and the two changes of clocks of a year."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.schedule import AHEAD, Timing, check_schedule
from rqueue.model.tick import Tick

BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2026, 3, 29, 0, 30, tzinfo=BERLIN)
AUTUMN = datetime(2026, 10, 25, 0, 30, tzinfo=BERLIN)


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def after(timing: Timing, at: datetime, count: int) -> list[str]:
    return [timing.local(tick).strftime("%d %H:%M%z")[:-2] for tick in timing.after(ms(at), count)]


@pytest.mark.parametrize(
    ("cron", "day", "ticks"),
    [
        ("30 2 * * *", SPRING, "29 03:00+02, 30 02:30+02"),
        ("30 2 * * *", AUTUMN, "25 02:30+02, 26 02:30+01"),
        ("15 * * * *", SPRING, "29 01:15+01, 29 03:15+02"),
        ("15 * * * *", AUTUMN, "25 01:15+02, 25 02:15+02, 25 02:15+01, 25 03:15+01"),
        ("*/30 2 * * *", SPRING, "30 02:00+02, 30 02:30+02"),
        ("*/30 2 * * *", AUTUMN, "25 02:00+02, 25 02:30+02, 25 02:00+01, 25 02:30+01"),
        ("0 0 * * *", SPRING, "30 00:00+02, 31 00:00+02"),
    ],
)
def test_the_clocks_are_changed(cron: str, day: datetime, ticks: str) -> None:
    """A-44."""
    timing = Timing.of(cron=cron, tz="Europe/Berlin")
    wanted = ticks.split(", ")
    assert after(timing, day, len(wanted)) == wanted


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_an_interval_counts_real_time(day: datetime) -> None:
    """A-44."""
    ticks = Timing.of(every=timedelta(hours=1)).after(ms(day), 5)
    assert ticks == [ms(day) + n * 3_600_000 for n in range(1, 6)]


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/7 * * * *", "15 * * * *", "@hourly"])
def test_the_last_tick_is_the_one_before_the_next(cron: str, day: datetime) -> None:
    timing = Timing.of(cron=cron, tz="Europe/Berlin")
    ticks = timing.after(ms(day - timedelta(days=2)), 200)
    for at, later in pairwise(ticks):
        if ms(day) - 10_000_000 < at < ms(day) + 20_000_000:
            assert timing.last(0, at) == timing.last(0, later - 1) == at
    assert ticks == sorted(set(ticks))


def test_several_expressions_are_one_schedule() -> None:
    timing = Timing.of(cron=["0 3 * * *", "0 15 * * 1-5", "0 3 * * 1"])
    friday = datetime(2026, 11, 20, tzinfo=UTC)
    assert after(timing, friday, 4) == ["20 03:00+00", "20 15:00+00", "21 03:00+00", "22 03:00+00"]


def test_seconds_may_stand_in_front() -> None:
    assert Timing.of(cron="*/10 * * * * *").after(5_000, 3) == [10_000, 20_000, 30_000]


def test_ticks_that_passed_unknown_are_reported_by_the_last_one() -> None:
    """A-42."""
    minutes = Timing.of(cron="* * * * *")
    known = minutes.after(0)
    now = 500 * 60_000 + 1
    ticks = minutes.refilled(known, 0, now)
    assert ticks[: AHEAD + 1] == [*known, 500 * 60_000]
    assert ticks[AHEAD + 1 :] == minutes.after(now)
    every = Timing.of(every=60)
    assert every.refilled(every.after(0), 0, now) == ticks


def test_a_window_bounds_how_far_back_it_goes() -> None:
    """A-42."""
    minutes = Timing.of(cron="* * * * *", missed="all", window="10m")
    now = 500 * 60_000
    assert minutes.refilled([], 60_000, now)[0] == 490 * 60_000
    assert minutes.refilled([], 495 * 60_000, now)[0] == 496 * 60_000


def test_how_late_is_in_time() -> None:
    assert Timing.of(every=10).grace_ms(0) == 5_000
    assert Timing.of(cron="@daily").grace_ms(0) == 60_000


def test_the_timing_is_stored_as_text() -> None:
    timing = Timing.of(cron=["@daily"], tz="Asia/Tokyo", missed="all", overlap="queue", jitter=3)
    assert Timing.parse(timing.text) == timing
    with pytest.raises(ConfigError):
        Timing.parse('{"cron": [], "later": 1}')


def test_a_tick_is_known_by_the_id_and_the_tag_of_its_job() -> None:
    at = datetime(2026, 11, 22, 3, tzinfo=UTC)
    assert Tick.of(f"a@b@{ms(at)}", b"1,2,4,0,0,0,5|t3;[]") == Tick("a@b", at, 3)
    assert Tick.of(f"a@{ms(at)}", b"1,2;[]") is None
    assert Tick.of("a", b"1,2,4,0,0,0,5|t3;[]") is None


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 181, 7])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InvalidName):
        check_schedule(name)


def test_a_zone_as_an_object_and_the_last_days_of_a_month() -> None:
    timing = Timing.of(cron=["0 0 L * *", "0 0 * * 5L"], tz=BERLIN)
    assert timing.tz == "Europe/Berlin"
    start = datetime(2026, 11, 1, tzinfo=BERLIN)
    assert after(timing, start, 2) == ["27 00:00+01", "30 00:00+01"]


@pytest.mark.parametrize(("every", "said"), [("5m", "5m"), ("90m", "1h 30m"), (1.5, "1.5s")])
def test_an_interval_is_printed_as_it_is_written(every: str | float, said: str) -> None:
    assert str(Timing.of(every=every)) == f"every {said}"


def test_a_range_that_runs_backwards_is_named() -> None:
    with pytest.raises(ConfigError, match="22-2 ends before it begins"):
        Timing.of(cron="0 22-2 * * *")
