"""Which consumers are notified of work: one able one per arrival, and every browser."""

from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture


def test_many_arrivals_wake_as_many_as_they_need(q: QueueFixture) -> None:
    """H-16: by their credit, not by their number."""
    consumers = [q.join(2) for _ in range(4)]
    q.queue.pause()
    q.put("1", "2", "3")
    q.queue.resume()
    assert list(map(q.state, consumers)) == ["notified"] * 2 + ["interested"] * 2


def test_browsers_are_woken_after_other_browsers_have_left(q: QueueFixture) -> None:
    """Q-34."""
    quiet, leaving = q.join(0, mode="browse"), q.join(5, mode="browse")
    leaving.close()
    quiet.interest(5)
    q.put("A")
    assert q.unread(quiet) == [b"w"]


def test_unanswered_wake_ups_do_not_pile_up(q: QueueFixture) -> None:
    """Q-33, X-02: a busy consumer is notified again and again, and reads one word."""
    q.queue.pause()
    busy = q.join(1)
    q.put("A")
    q.queue.resume()
    for _ in range(5):
        move_time(q.queue, 6000)
        q.renew(busy)
    assert q.unread(busy) == [b"w"]
