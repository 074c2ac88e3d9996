"""Periodic jobs that code declares: owned by the leases of consumers, through deploys."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import BadArguments, ConfigError
from rqueue.model.schedule import Timing
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.testing import FrozenTime, frozen_time
from rqueue.transport.redis_client import execute
from rqueue_workers.worker.declaring import Declaration, declarations_of, declare
from tests.support.queue_fixture import QueueFixture, ids

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MINUTE = 60
LONG = 10**9

pytestmark = pytest.mark.parametrize("q", ["consumer"], indirect=True)


@pytest.fixture
def time(q: QueueFixture) -> Iterator[FrozenTime]:
    with frozen_time(q.queue, START) as frozen:
        yield frozen


def deploy(q: QueueFixture, *declared: Timing, app: str = "shop") -> Consumer:
    """A consumer of a release whose code declares schedule s so, or does not."""
    consumer = q.consumer(jobs=50, lease=LONG).register()
    said = [Declaration("s", "s", q.queue.name, timing, "4,,0,", '["s"]') for timing in declared]
    name, term = consumer.name, consumer.term
    declare(lambda call: execute(q.queue.redis, call), q.queue.keys, name, term, app, said, None)
    return consumer


OLD, NEW = Timing.of(every=60), Timing.of(every=120)


def timing(q: QueueFixture) -> Timing:
    return q.queue.schedules.get("s").timing


def test_what_code_declares_ticks(q: QueueFixture, time: FrozenTime) -> None:
    """A-46: however many processes declare it."""
    one, other = deploy(q, OLD), deploy(q, OLD)
    time.move(MINUTE)
    assert len(ids(one.pull()) + ids(other.pull())) == 1
    info = q.queue.schedules.get("s")
    assert (info.task, info.state, info.fired) == ("s", "active", 1)


def test_the_newer_release_counts_while_it_lives(q: QueueFixture, time: FrozenTime) -> None:
    """A-46: an old process that starts anew in the middle of a deploy does not win back."""
    deploy(q, OLD)
    new = deploy(q, NEW)
    assert timing(q) == NEW
    deploy(q, OLD)
    assert timing(q) == NEW
    new.close()
    deploy(q, OLD)
    assert timing(q) == OLD, "a rollback brings the older one back"


def test_what_left_the_code_is_retired_after_the_deploy(q: QueueFixture, time: FrozenTime) -> None:
    """A-46: ten minutes of a release that does not declare it, and none that does."""
    old = deploy(q, Timing.of(every=60, missed="skip"))
    without = deploy(q)
    stranger = deploy(q, app="another")
    time.move(30 * MINUTE)
    (job,) = without.pull()
    without.ack(job)
    old.close()
    late = deploy(q)
    without.close()
    time.move(9 * MINUTE)
    assert len(stranger.pull()) == 1, "no release without it has lived so long"
    time.move(2 * MINUTE)
    assert not late.pull()
    assert q.queue.schedules.get("s").state == "retired"
    time.move(60 * MINUTE)
    assert not late.pull()
    back = deploy(q, Timing.of(every=60, missed="skip"))
    assert q.queue.schedules.get("s").state == "active"
    time.move(MINUTE)
    assert len(back.pull()) == 1


def test_without_any_worker_it_stays(q: QueueFixture, time: FrozenTime) -> None:
    """A-46."""
    deploy(q, OLD).close()
    time.move(60 * MINUTE)
    assert len(q.join(5).pull()) == 1


def test_what_people_change_lies_over_the_code(q: QueueFixture, time: FrozenTime) -> None:
    """A-46: until it is reset."""
    deploy(q, OLD)
    schedules = q.queue.schedules
    edited = schedules.edit("s", every="1h")
    assert edited.edited
    deploy(q, NEW)
    assert timing(q) == edited.timing
    assert schedules.reset("s").timing == NEW
    schedules.pause("s")
    assert not schedules.get("s").edited
    deploy(q, Timing.of(every=180))
    assert (timing(q).every_ms, schedules.get("s").state) == (180_000, "paused")
    schedules.set("mine", "t", every=60)
    with pytest.raises(ConfigError):
        schedules.reset("mine")


def test_the_decorator_declares(q: QueueFixture) -> None:
    """A-46."""
    here = Registry()

    @task(cron="0 3 * * *", tz="Europe/Berlin", queue=q.queue.name, priority=9, registry=here)
    def nightly(day: str = "today") -> str:
        return day

    @task(registry=here)
    def other() -> None: ...

    (declared,) = declarations_of(nightly)
    assert (declared.task, declared.queue, declared.terms) == (nightly.name, q.queue.name, "9,,0,")
    assert declared.timing == Timing.of(cron="0 3 * * *", tz="Europe/Berlin")
    assert [*declarations_of(other)] == []
    with pytest.raises(BadArguments):

        @task(every=60, registry=here)
        def wrong(x: int) -> None: ...

    with pytest.raises(ConfigError):
        task(every=0.1, registry=here)(lambda: None)
