"""Qpid's order of a queue and its listing."""

from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_QLO_01_the_listing_is_the_order_of_arrival(q: QueueFixture, kind: str) -> None:
    """Q-01."""
    names = [str(i) for i in range(1, 101)]
    q.put(*names)
    assert q.listed() == names
    q.put("101")
    assert q.listed() == [*names, "101"]


@every_kind
def test_QLO_02_what_has_ended_is_not_listed(q: QueueFixture, kind: str) -> None:
    """Q-09."""
    q.put(*"0123456789")
    for id in "02468":
        q.queue.cancel(id)
    assert q.listed() == list("13579")


@every_kind
def test_QLO_04_what_has_ended_leaves_nothing_behind(q: QueueFixture, kind: str) -> None:
    """Q-09: a mark keeps the place until the head has passed it."""
    left = [f"{i:02}" for i in range(1, 101)]
    q.put(*left)
    for number in (2, 12, 13, 14, 20, 81, 82, 83, 84, 99):
        q.queue.cancel(f"{number:02}")
        left.remove(f"{number:02}")
        assert q.listed() == left
        assert q.queue.counts().ready == len(left)
    consumer = q.join()
    seen: list[str] = []
    while len(seen) < len(left):
        jobs = consumer.pull()
        seen += ids(jobs)
        consumer.settle(ack=jobs)
    assert seen == left
    consumer.pull()
    look = q.look()
    assert (look.jobs, look.lists, look.meta.get("marked", "0")) == ({}, {}, "0")


@every_kind
def test_QLO_05_the_oldest_stays_the_oldest(q: QueueFixture, kind: str) -> None:
    """Q-67, Q-72."""
    oldest = []
    for id in "123":
        q.put(id)
        move_time(q.queue, 1000)
        oldest.append(q.queue.counts().oldest_enqueued_ms)
    (first, *_) = q.join().pull()
    assert set(oldest) == {first.enqueued_ms}
