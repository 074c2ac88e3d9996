# Generated from tests/client/_async/test_schedules.py (`make generate`): do not edit.
"""Periodic jobs from a program: set, steer, look."""

from datetime import UTC, datetime, timedelta

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import BadArguments, ConfigError, InvalidName, NotEncodable, UnknownSchedule
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from tests.support.both import move_time

HERE = Registry()


@task(name="page.add", registry=HERE, priority=9)
def add(a: int, b: int = 0) -> int:
    return a + b


def test_a_schedule_from_its_making_to_its_end(queue: Queue) -> None:
    """A-45."""
    schedules = queue.schedules
    made = schedules.set("s", add, [1], {"b": 2}, every=timedelta(minutes=5))
    assert (made.task, made.state, made.envelope[1:3]) == ("page.add", "active", ([1], {"b": 2}))
    assert made.now_ms < made.next_ms <= made.now_ms + 300_000
    assert schedules.pause("s") and not schedules.pause("s")
    assert (schedules.get("s")).state == "paused"
    assert schedules.resume("s")
    handle = schedules.run_now("s")
    with queue.consumer() as consumer:
        (job,) = consumer.pull()
    assert (job.id, job.level) == (handle.id, 9)
    edited = schedules.edit("s", kwargs={"b": 3}, every="10m")
    assert edited.envelope[1:3] == ([1], {"b": 3})
    (first, second) = schedules.next("s", 2)
    assert second - first == timedelta(minutes=10)
    assert [info.name for info in schedules.list()] == ["s"]
    assert schedules.remove("s") and not schedules.remove("s")


def test_ticks_are_computed_before_they_are_needed(queue: Queue) -> None:
    """A-42."""
    queue.schedules.set("s", "t", cron="* * * * *", missed="all")
    known = len((queue.schedules.get("s")).nexts)
    move_time(queue, (known - 1) * 60_000)
    with queue.consumer(jobs=100) as consumer:
        assert len(consumer.pull()) == known - 1
    assert queue.schedules.refill() == 1
    assert len((queue.schedules.get("s")).nexts) > known / 2
    assert queue.schedules.refill() == 0


def test_the_next_ticks_are_in_the_zone_of_the_expression(queue: Queue) -> None:
    """A-44."""
    queue.schedules.set("s", "t", cron=["0 3 * * *", "@monthly"], tz="Asia/Tokyo")
    ticks = queue.schedules.next("s", 40)
    assert len(ticks) == 40 and ticks == sorted(ticks)
    assert {tick.hour for tick in ticks} == {0, 3}
    assert ticks[0] > datetime.now(UTC)


def test_what_is_refused_stores_nothing(queue: Queue) -> None:
    schedules = queue.schedules
    with pytest.raises(BadArguments):
        schedules.set("s", add, every=60)
    with pytest.raises(NotEncodable):
        schedules.set("s", add, [b"x"], every=60)
    with pytest.raises(InvalidName):
        schedules.set("", add, [1], every=60)
    for options in (Options(id="j"), Options(delay_ms=5), Options(immediate=True)):
        with pytest.raises(ConfigError):
            schedules.set("s", "t", every=60, options=options)
    for name in ("get", "pause", "resume", "run_now", "next", "edit"):
        with pytest.raises(UnknownSchedule):
            getattr(schedules, name)("s")
    with pytest.raises(ConfigError):
        schedules.next("s", 0)
    assert not schedules.list()


def test_each_tick_is_signed(queue: Queue) -> None:
    """A-41: its job is verified as any other, and who has no keys lets none run."""
    keys = {"k1": "0123456789abcdef"}
    url = queue.settings.url
    with Queue(queue.name, url, signing_keys=keys) as signed:
        for name, when in (("c", {"cron": "* * * * *"}), ("e", {"every": 60})):
            signed.schedules.set(name, "t", [name], **when)  # type: ignore[arg-type]
        move_time(queue, 30 * 60_000)
        assert queue.schedules.refill() == 0, "without the keys nobody signs"
        with signed.consumer(jobs=9) as consumer:
            assert not consumer.pull()
            assert signed.schedules.refill() == 2
            jobs = consumer.pull()
            assert sorted(signed.envelope(job).args[0] for job in jobs) == ["c", "e"]
            handle = signed.schedules.run_now("e")
            (job,) = consumer.pull()
            assert (job.id, signed.envelope(job).args) == (handle.id, ["e"])
        info = signed.schedules.get("c")
        stored = queue.redis.hget(queue.keys.schedules, "c")
        forged = stored.replace(b"* * * * *", b"1 * * * *")
        queue.redis.hset(queue.keys.schedules, "c", forged)
        move_time(queue, 60 * 60_000)
        with signed.consumer(jobs=9) as consumer:
            consumer.pull()
        assert signed.schedules.refill() == 1, "what was changed past the keys is not signed"
        assert (signed.schedules.get("c")).nexts[-1] <= info.nexts[-1]
