"""Periodic jobs that are unique: a tick whose key another job has makes none, and says so."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from rqueue.errors import ConfigError, DuplicateJob
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Unique
from rqueue.testing import FrozenTime, frozen_time
from rqueue.transport.redis_client import execute
from rqueue_workers.worker.declaring import declarations_of, declare
from tests.support.queue_fixture import QueueFixture, ids, one_kind

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MINUTE = 60

registry = Registry()

pytestmark = one_kind


@task(name="s", registry=registry, unique=True)
def sync(account_id: int = 7) -> None: ...


@pytest.fixture
def time(q: QueueFixture) -> Iterator[FrozenTime]:
    with frozen_time(q.queue, START) as frozen:
        yield frozen


def seen(q: QueueFixture) -> tuple[int, int]:
    """How many jobs schedule s made, and how many of its ticks met a job that has their key."""
    info = q.queue.schedules.get("s")
    return info.fired, info.conflicts


def test_a_tick_whose_key_is_taken_makes_no_job(q: QueueFixture, time: FrozenTime) -> None:
    q.queue.schedules.set("s", sync, every=60)
    first = q.queue.enqueue(sync)
    c = q.join(9)
    time.move(MINUTE)
    assert ids(c.pull()) == [first.id]
    assert seen(q) == (0, 1)
    c.ack(first.id)
    time.move(MINUTE)
    (job,) = c.pull()
    again = q.queue.enqueue(sync, 7)
    assert (again.id, again.created, again.conflict) == (job.id, False, "held")
    time.move(MINUTE)
    assert (ids(c.pull()), seen(q)) == ([], (1, 2))
    c.ack(job)
    assert "unique" not in q.look().keys


def test_what_is_missed_and_what_waits_for_the_job_before(
    q: QueueFixture, time: FrozenTime
) -> None:
    q.queue.schedules.set("s", sync, every=60, missed="all", overlap="queue")
    c = q.join(9)
    time.move(3 * MINUTE)
    (job,) = c.pull()
    other = q.queue.enqueue(sync, 7)
    assert other.id == job.id
    c.ack(job)
    assert q.queue.enqueue(sync, 7).created
    q.renew()
    assert seen(q) == (1, 1), "the tick that waited finds another job"


def test_run_now_answers_as_an_enqueue_does(q: QueueFixture, time: FrozenTime) -> None:
    q.queue.schedules.set("s", sync, every=60)
    first = q.queue.schedules.run_now("s")
    time.move(1)
    again = q.queue.schedules.run_now("s")
    assert (first.created, again.id, again.created, again.conflict) == (
        True,
        first.id,
        False,
        "ready",
    )
    assert q.queue.enqueue(sync).id == first.id
    refused = sync.options(unique=Unique(on_conflict="raise"))
    q.queue.schedules.set("s", refused, every=60)
    time.move(1)
    before = q.look()
    with pytest.raises(DuplicateJob) as caught:
        q.queue.schedules.run_now("s")
    assert caught.value.id == first.id
    assert q.look().keys == before.keys
    time.move(MINUTE)
    assert ids(q.join(9).pull()) == [first.id]
    assert seen(q) == (1, 1), "of a tick that is to be refused there is nobody to tell"


@pytest.mark.parametrize("unique", [Unique(until="start"), Unique(until="1h")])
def test_a_tick_keeps_others_away_as_long_as_it_says(
    q: QueueFixture, time: FrozenTime, unique: Unique
) -> None:
    q.queue.schedules.set("s", sync.options(unique=unique), every=60)
    c = q.join(1)
    time.move(MINUTE)
    (job,) = c.pull()
    if unique.until != "start":
        c.ack(job)
    created = q.queue.enqueue(sync.options(unique=unique)).created
    assert created == (unique.until == "start")


def test_what_code_declares_is_unique_too(q: QueueFixture, time: FrozenTime) -> None:
    declared = task(name="s", registry=Registry(), queue=q.queue.name, every="1m", unique=True)
    periodic = declared(lambda: None)
    c = q.consumer(jobs=9, lease=10**6).register()
    (said,) = declarations_of(periodic)
    keys = q.queue.keys
    declare(lambda call: execute(q.queue.redis, call), keys, c.name, c.term, "shop", [said], None)
    assert periodic.unique_key() in said.terms
    first = q.queue.enqueue(periodic)
    time.move(MINUTE)
    assert ids(c.pull()) == [first.id]
    assert seen(q) == (0, 1)


def test_its_arguments_are_not_changed_behind_its_key(q: QueueFixture) -> None:
    q.queue.schedules.set("s", sync, [1], every=60)
    with pytest.raises(ConfigError, match="set it anew, with the task"):
        q.queue.schedules.edit("s", args=[2])
    q.queue.schedules.set("s", sync, [2], every=60)
    q.queue.schedules.run_now("s")
    assert not q.queue.enqueue(sync, 2).created and q.queue.enqueue(sync, 1).created
