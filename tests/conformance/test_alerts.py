"""Alerts: one where an arrival brings the queue to its depth, until it has fallen below."""

import pytest

from rqueue.errors import ConfigError
from rqueue.protocol.commands import Put
from rqueue.testing import move_time
from tests.support.alerting import alerts
from tests.support.queue_fixture import QueueFixture, every_place, ids, one_kind


@pytest.fixture
def three(q: QueueFixture) -> QueueFixture:
    """A queue with an alert at three jobs."""
    q.queue.configure(alert_depth=3)
    return q


def test_one_until_it_has_fallen_below(three: QueueFixture) -> None:
    """Q-72."""
    three.put("1", "2", "3", "4", "5")
    assert alerts(three) == [(3, 3)]
    consumer = three.join(10)
    consumer.settle(ack=ids(consumer.pull())[:2], pull=True)
    three.put("6")
    assert alerts(three) == [(3, 3)], "there were three of them all the time"
    consumer.settle(ack=["3", "4"], pull=True)
    three.put("7")
    assert alerts(three) == [(3, 3), (3, 3)]


@every_place
def test_a_batch_that_passes_it_is_one_alert(three: QueueFixture) -> None:
    three.queue.enqueue_puts([Put(str(number), b"[]") for number in range(100)])
    assert alerts(three) == [(100, 3)]
    three.queue.delete(jobs=True)
    assert {*three.look().keys} == {"meta"}


def test_what_a_consumer_holds_counts_and_what_comes_back_is_no_arrival(
    three: QueueFixture,
) -> None:
    consumer = three.join(2)
    three.put("1", "2")
    consumer.settle(release=ids(consumer.pull()))
    consumer.pull()
    assert alerts(three) == []
    three.put("3")
    consumer.settle(release=["1", "2"])
    assert alerts(three) == [(3, 3)]


@one_kind
def test_scheduled_jobs_count_and_dead_ones_do_not(three: QueueFixture) -> None:
    three.put("1", delay_ms=1000)
    three.put("2")
    consumer = three.join(1)
    consumer.pull()
    consumer.reject("2", "no")
    three.put("3")
    move_time(three.queue, 2000)
    assert ids(consumer.pull()) == ["1"]
    assert alerts(three) == []
    assert three.requeue("2") == 1
    assert alerts(three) == [(3, 3)]


@one_kind
def test_a_tick_is_an_arrival(three: QueueFixture) -> None:
    three.put("1", "2")
    three.queue.schedules.set("nightly", "t", every=3600)
    three.queue.schedules.run_now("nightly")
    assert alerts(three) == [(3, 3)]


@one_kind
def test_what_is_refused_known_or_displaced_is_none(three: QueueFixture) -> None:
    three.queue.configure(ring=2)
    three.put("1", "2", "2", "3")
    assert alerts(three) == []


@one_kind
def test_the_last_hundred_are_kept(q: QueueFixture) -> None:
    q.queue.configure(alert_depth=1)
    for number in range(102):
        q.put(str(number))
        q.queue.cancel(str(number))
        q.queue.configure(alert_depth=number + 2)
        q.queue.configure(alert_depth=1)
    assert alerts(q) == [(1, 1)] * 100


@one_kind
def test_a_queue_that_is_above_already_alerts_when_that_is_configured(q: QueueFixture) -> None:
    """Q-72."""
    q.put("1", "2", "3")
    q.queue.configure(alert_depth=2)
    assert alerts(q) == [(3, 2)]
    q.queue.configure(alert_depth=2, max_deliveries=5)
    q.put("4")
    assert alerts(q) == [(3, 2)], "one until it has fallen"
    q.queue.configure(alert_depth=4)
    assert alerts(q) == [(3, 2), (4, 4)]
    q.queue.configure(alert_depth=0)
    assert q.purge() == 4
    q.put("5", "6")
    assert alerts(q) == [(3, 2), (4, 4)]
    for wrong in (-1, 1.5, "3"):
        with pytest.raises(ConfigError, match="alert_depth"):
            q.queue.configure(alert_depth=wrong)  # type: ignore[arg-type]
