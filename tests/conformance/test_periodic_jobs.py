"""Periodic jobs: one job for each tick, however many look."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rqueue.errors import ConfigError, UnknownSchedule
from rqueue.model.tick import Tick
from rqueue.testing import FrozenTime, frozen_time, housekeeping
from tests.support.queue_fixture import QueueFixture, ids, one_kind

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MINUTE = 60


@pytest.fixture
def time(q: QueueFixture) -> Iterator[FrozenTime]:
    with frozen_time(q.queue, START) as frozen:
        yield frozen


def at(minutes: float) -> str:
    """The id that a tick of schedule s has, so many minutes from the start."""
    return f"s@{round((START + timedelta(minutes=minutes)).timestamp() * 1000)}"


def test_a_tick_becomes_a_job_for_who_waits(q: QueueFixture, time: FrozenTime) -> None:
    """A-41: one consumer watches for the next tick, and knows when it is."""
    consumer = q.join(2)
    assert not consumer.pull()
    assert consumer.timer_ms == -1
    q.queue.schedules.set("s", "t", [1], every="5m")
    assert q.unread(consumer) == [b"w"]
    assert not consumer.pull()
    assert consumer.timer_ms == 5 * MINUTE * 1000
    time.move(5 * MINUTE)
    (job,) = consumer.pull()
    assert job.id == at(5)
    assert q.queue.envelope(job).args == [1]
    assert Tick.of(job.id, job.value) == Tick("s", START + timedelta(minutes=5))
    consumer.ack(job)
    time.move(5 * MINUTE)
    assert ids(consumer.pull()) == [at(10)]


@one_kind
def test_two_who_look_at_once_make_one_job(q: QueueFixture, time: FrozenTime) -> None:
    """A-41."""
    q.queue.schedules.set("s", "t", cron="*/5 * * * *")
    one, other = q.join(5), q.join(5)
    time.move(5 * MINUTE)
    assert ids(one.pull()) + ids(other.pull()) == [at(5)]
    q.renew(one, other)
    assert ids(one.pull()) + ids(other.pull()) == []


@one_kind
def test_a_renewal_fires_while_nobody_pulls(q: QueueFixture, time: FrozenTime) -> None:
    """A-41: all workers are busy with long jobs."""
    q.queue.schedules.set("s", "t", every=60)
    time.move(MINUTE)
    housekeeping(q.queue)
    assert [id for id, *_ in q.look().scheduled] == [at(1)]


@one_kind
def test_the_last_of_the_missed_ticks_is_made_up_for(q: QueueFixture, time: FrozenTime) -> None:
    """A-42."""
    q.queue.schedules.set("s", "t", cron="* * * * *")
    consumer = q.join(9)
    time.move(7.5 * MINUTE)
    (job,) = consumer.pull()
    assert job.id == at(7)
    tick = Tick.of(job.id, job.value)
    assert tick is not None and tick.missed == 6
    assert q.queue.schedules.get("s").missed == 6


@one_kind
def test_a_night_without_workers_is_one_job(q: QueueFixture, time: FrozenTime) -> None:
    """A-42: more ticks have passed than were known ahead."""
    q.queue.schedules.set("s", "t", cron="* * * * *")
    consumer = q.join(9)
    time.move(480 * MINUTE)
    assert not consumer.pull()
    assert q.queue.schedules.refill() == 1
    assert ids(consumer.pull()) == [at(480)]
    time.move(MINUTE)
    assert ids(consumer.pull()) == [at(481)]


@one_kind
def test_missed_ticks_may_be_left_out(q: QueueFixture, time: FrozenTime) -> None:
    """A-42: a minute late, or half an interval, is in time."""
    q.queue.schedules.set("s", "t", cron="* * * * *", missed="skip")
    consumer = q.join(9)
    time.move(3.75 * MINUTE)
    assert not consumer.pull()
    time.move(0.5 * MINUTE)
    assert ids(consumer.pull()) == [at(4)]


@pytest.mark.parametrize("timing", [{"cron": "* * * * *"}, {"every": 60}])
@one_kind
def test_all_missed_ticks_of_a_window(
    q: QueueFixture, time: FrozenTime, timing: dict[str, str]
) -> None:
    """A-42: in their order, also where more are due than were known ahead."""
    q.queue.schedules.set("s", "t", **timing, missed="all", window="1h")
    consumer = q.join(500)
    time.move(180 * MINUTE)
    found: list[str] = []
    while (page := ids(consumer.pull())) or q.queue.schedules.refill():
        found += page
    assert found == [at(n) for n in range(120, 181)]
    # of expressions those are counted that were known
    assert q.queue.schedules.get("s").missed == (119 if "every" in timing else 16)


@one_kind
def test_a_tick_may_be_left_out_while_its_last_job_lives(q: QueueFixture, time: FrozenTime) -> None:
    """A-43."""
    q.queue.schedules.set("s", "t", every=60, overlap="skip")
    consumer = q.join(9)
    time.move(MINUTE)
    (job,) = consumer.pull()
    time.move(MINUTE)
    assert not consumer.pull()
    consumer.retry(job, delay=600)
    time.move(MINUTE)
    assert not consumer.pull()
    q.queue.cancel(job.id)
    time.move(MINUTE)
    assert ids(consumer.pull()) == [at(4)]
    assert q.queue.schedules.get("s").skipped == 2


@one_kind
def test_a_tick_may_wait_for_the_end_of_the_last_job(q: QueueFixture, time: FrozenTime) -> None:
    """A-43: one of them at the most, the last one."""
    q.queue.schedules.set("s", "t", every=60, overlap="queue")
    consumer = q.join(9)
    time.move(MINUTE)
    (job,) = consumer.pull()
    for _ in range(3):
        time.move(MINUTE)
        assert not consumer.pull()
    consumer.ack(job)
    assert ids(consumer.pull()) == [at(4)]
    assert q.queue.schedules.get("s").skipped == 2


@one_kind
def test_jobs_overlap_where_nothing_else_is_said(q: QueueFixture, time: FrozenTime) -> None:
    """A-43."""
    q.queue.schedules.set("s", "t", every=60)
    consumer = q.join(9)
    time.move(MINUTE)
    assert ids(consumer.pull()) == [at(1)]
    time.move(MINUTE)
    assert ids(consumer.pull()) == [at(2)]


@one_kind
def test_to_set_it_again_changes_nothing(q: QueueFixture, time: FrozenTime) -> None:
    """A-45."""
    schedules = q.queue.schedules
    made = schedules.set("s", "t", every=60)
    time.move(30)
    assert schedules.set("s", "t", every=60).version == made.version
    other = schedules.set("s", "t", [7], every=60)
    assert (other.next_ms, other.version > made.version) == (made.next_ms, True)
    moved = schedules.set("s", "t", [7], every=30)
    assert moved.next_ms == made.next_ms  # 30 s from now, by chance of this test


@one_kind
def test_pause_and_resume(q: QueueFixture, time: FrozenTime) -> None:
    """A-45: what ticks meanwhile is not missed."""
    schedules = q.queue.schedules
    schedules.set("s", "t", cron="* * * * *", missed="all")
    assert schedules.pause("s") and not schedules.pause("s")
    consumer = q.join(9)
    time.move(5 * MINUTE)
    assert not consumer.pull()
    assert consumer.timer_ms == -1
    assert schedules.set("s", "t", cron="* * * * *", missed="all").state == "paused"
    assert schedules.resume("s") and not schedules.resume("s")
    assert not consumer.pull()
    time.move(MINUTE)
    assert ids(consumer.pull()) == [at(6)]


@one_kind
def test_a_paused_queue_fires_when_it_goes_on(q: QueueFixture, time: FrozenTime) -> None:
    """A-45, A-32."""
    q.queue.schedules.set("s", "t", every=60)
    consumer = q.join(9)
    q.queue.pause()
    time.move(3 * MINUTE)
    assert not consumer.pull()
    q.renew(consumer)
    assert not q.look().jobs
    q.queue.resume()
    assert ids(consumer.pull()) == [at(3)]


@one_kind
def test_edit_run_now_and_remove(q: QueueFixture, time: FrozenTime) -> None:
    """A-45."""
    schedules = q.queue.schedules
    schedules.set("s", "t", [1], {"b": 2}, every=60)
    assert schedules.edit("s", args=[3], every="1h").timing.every_ms == 3_600_000
    consumer = q.join(9)
    assert schedules.run_now("s").id == at(0)
    (job,) = consumer.pull()
    assert q.queue.envelope(job)[1:3] == ([3], {"b": 2})
    assert [info.name for info in schedules.list()] == ["s"]
    assert schedules.remove("s") and not schedules.remove("s")
    assert not schedules.list()
    for call in (schedules.get, schedules.pause, schedules.run_now, schedules.next):
        with pytest.raises(UnknownSchedule):
            call("s")
    time.move(3600)
    assert not consumer.pull()


@one_kind
def test_the_next_ticks(q: QueueFixture, time: FrozenTime) -> None:
    """A-44: in the time zone of the expression."""
    q.queue.schedules.set("s", "t", cron="30 3 * * *", tz="Europe/Berlin")
    shown = [tick.isoformat() for tick in q.queue.schedules.next("s", 2)]
    assert shown == ["2026-11-23T03:30:00+01:00", "2026-11-24T03:30:00+01:00"]


@one_kind
def test_jitter_is_after_the_tick(q: QueueFixture, time: FrozenTime) -> None:
    """A-45: by the job's id, so that it is the same for all who compute it."""
    q.queue.schedules.set("s", "t", every=60, jitter=30)
    time.move(MINUTE)
    housekeeping(q.queue)
    ((id, due, *_),) = q.look().scheduled
    assert id == at(1)
    assert time.now.timestamp() * 1000 <= due <= time.now.timestamp() * 1000 + 30_000


@one_kind
def test_jitter_differs_between_installations(q: QueueFixture, time: FrozenTime) -> None:
    """A-45: the same program elsewhere runs at other times; a queue keeps to its own."""
    other = q.queue.at(f"{q.queue.name}-elsewhere")
    found: list[dict[bytes, float]] = []
    with frozen_time(other, START) as its:
        for queue, moving in ((q.queue, time), (other, its)):
            queue.schedules.set("s", "t", every=60, jitter=30)
            for _ in range(5):
                moving.move(MINUTE)
                housekeeping(queue)
            own = queue.redis.hget(queue.keys.meta, "spread")
            dues = queue.redis.zrange(queue.keys.scheduled, 0, -1, withscores=True)
            found.append({member[-20:]: due for member, due in dues})
            queue.schedules.set("s", "t", every=60, jitter=40)
            moving.move(MINUTE)
            housekeeping(queue)
            assert queue.redis.hget(queue.keys.meta, "spread") == own
    here, there = found
    assert here.keys() == there.keys()
    assert here != there


@one_kind
def test_what_no_schedule_can_be(q: QueueFixture) -> None:
    schedules = q.queue.schedules
    for wrong in (
        {},
        {"cron": "61 * * * *"},
        {"cron": "0 0 30 2 *"},
        {"cron": "@sometimes"},
        {"cron": "@daily", "every": 60},
        {"cron": "@daily", "tz": "Europe/Bärlin"},
        {"every": 0.5},
        {"every": 60, "missed": "some"},
        {"every": 60, "overlap": "never"},
    ):
        with pytest.raises(ConfigError):
            schedules.set("s", "t", **wrong)
    assert not schedules.list()
