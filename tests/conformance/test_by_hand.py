"""What people do with jobs that wait, are scheduled, are held or are gone."""

import pytest

from rqueue import UNLIMITED, GrantCredit, JobFilter, WindowCredit
from rqueue.errors import QueueFull
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

pytestmark = one_kind

MINUTE = 60_000


def test_due_jobs_come_in_due_order_before_the_others(q: QueueFixture) -> None:
    """A-06, X-06 (after Artemis's testScheduledNoConsumer)."""
    q.put("plain")
    for id, delay in (("500", 500), ("300", 300), ("400", 400)):
        q.put(id, delay_ms=delay)
    q.put("high", priority=9, delay_ms=600)
    q.put("low", priority=0, delay_ms=200)
    move_time(q.queue, 700)
    assert ids(q.join(10).pull()) == ["high", "300", "400", "500", "plain", "low"]


def test_what_a_filter_says_is_delivered_now(q: QueueFixture) -> None:
    """A-09: in due order."""
    for id, minutes, colour in (("A", 3, "red"), ("B", 2, "blue"), ("C", 1, "red")):
        q.put(id, delay_ms=minutes * MINUTE, labels={"colour": colour})
    assert q.queue.promote_all(JobFilter(labels={"colour": "red"})) == 2
    assert q.listed() == ["C", "A"]
    assert q.queue.promote_all() == 1
    assert q.queue.promote_all() == 0


def test_scheduled_jobs_end_by_hand(q: QueueFixture) -> None:
    """A-11, A-38."""
    q.put("A", "B", "C", "D", delay_ms=MINUTE)
    assert (q.queue.expire("A"), q.queue.reject("B")) == (1, 1)
    assert q.queue.cancel("C") and not q.queue.cancel("C")
    counts = q.queue.counts()
    assert (counts.scheduled, counts.dead) == (1, 1)
    move_time(q.queue, MINUTE + 1)
    assert ids(q.join(5).pull()) == ["D"]


def test_a_scheduled_job_gets_another_priority(q: QueueFixture) -> None:
    """Q-13, A-38."""
    q.put("A", delay_ms=10, priority=0)
    q.put("B")
    assert q.queue.set_priority("A", 9)
    move_time(q.queue, 20)
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["A", "B"]
    assert not q.queue.set_priority("A", 0), "it is held"
    assert not q.queue.set_priority("nobody", 0)


def test_what_is_due_in_a_paused_queue_waits(q: QueueFixture) -> None:
    """A-32, A-08."""
    assert q.queue.pause() and not q.queue.pause()
    q.put("A", delay_ms=10)
    consumer = q.join(1)
    move_time(q.queue, 20)
    assert consumer.pull() == []
    assert q.queue.resume() and not q.queue.resume()
    assert ids(consumer.pull(recall=True)) == ["A"]


def test_what_a_filter_says_is_moved(q: QueueFixture) -> None:
    """A-10, A-38, Q-69: scheduled ones too, held ones not."""
    with second(q) as other:
        q.put("held", labels={"x": 1})
        q.join(1).pull()
        q.put("A", delay_ms=MINUTE, labels={"x": 1})
        q.put("B", labels={"x": 1})
        q.put("C", labels={"x": 2})
        assert q.queue.move_all(other.queue.name, JobFilter(labels={"x": "1"})) == 2
        counts = other.queue.counts()
        assert (counts.scheduled, counts.ready, q.listed()) == (1, 1, ["C"])


def test_a_copy_does_not_fill_a_queue_beyond_its_limit(q: QueueFixture) -> None:
    """Q-69, Q-67."""
    q.put("A", "B", "C")
    with second(q, max_jobs=2) as other:
        with pytest.raises(QueueFull):
            q.queue.copy_all(other.queue.name)
        assert q.listed() == ["A", "B", "C"]
        assert other.queue.counts().ready <= 2


def test_so_many_are_cancelled_or_expired_as_are_meant(q: QueueFixture) -> None:
    """A-38 (after Artemis's testRemoveMessagesWithLimit, testExpireMessagesWithFilter)."""
    q.put(*"ABCDE")
    assert q.queue.cancel_all(limit=2) == 2
    assert q.queue.expire_all(JobFilter(task="another")) == 0
    assert q.queue.expire_all(JobFilter(task="t"), limit=1) == 1
    assert q.listed() == ["D", "E"]


def test_an_ack_of_what_is_not_held_acks_nothing(q: QueueFixture) -> None:
    """Q-55."""
    q.put("A", "B")
    consumer = q.join(2)
    consumer.pull()
    assert not consumer.ack("nobody") and consumer.ack_multiple("nobody") == 0
    assert q.queue.counts().held == 2
    assert consumer.ack("A") and not consumer.ack("A")


def test_ids_of_any_text_are_cancelled_under_their_own_name(q: QueueFixture) -> None:
    """C-25: Curator takes two of these for one, and finds neither."""
    names = ["a/b", "a_b", "a|b", "ä ö", "x,y;z", "{q}:meta"]
    q.put(*names)
    for left, name in enumerate(names):
        assert q.queue.counts().ready == len(names) - left
        assert q.queue.cancel(name)


def test_grants_are_added_up_and_acks_give_nothing_back(q: QueueFixture) -> None:
    """Q-51."""
    q.put(*"ABCDEF")
    consumer = q.consumer(credit=GrantCredit(0, 0)).register()
    assert consumer.pull() == []
    consumer.grant(1, UNLIMITED)
    consumer.grant(1, UNLIMITED)
    assert ids(consumer.pull()) == ["A", "B"]
    consumer.settle(ack=["A", "B"])
    assert consumer.pull() == []
    consumer.grant(1, UNLIMITED)
    assert ids(consumer.pull()) == ["C"]


def test_a_window_without_limits_takes_all(q: QueueFixture) -> None:
    """Q-50."""
    q.put(*map(str, range(600)))
    consumer = q.consumer(credit=WindowCredit(UNLIMITED, UNLIMITED)).register()
    count = 0
    while jobs := consumer.pull():
        count += len(jobs)
    assert count == 600


def test_a_full_ring_makes_room_in_its_lowest_level(q: QueueFixture) -> None:
    """Q-67, X-08: Qpid's lets a high one in beside what it holds."""
    q.queue.configure(ring=2)
    q.put("A", "B", priority=0)
    q.put("C", priority=9)
    assert q.listed() == ["C", "B"]
    q.put("D", priority=0)
    assert q.listed() == ["C", "D"]
    q.queue.configure(ring=3)
    q.put("E", priority=0)
    assert q.listed() == ["C", "D", "E"]
