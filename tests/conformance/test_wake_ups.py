"""Which consumers are notified of work: one able one per arrival, and every browser."""

from rqueue.protocol.credit import UNLIMITED, WindowCredit
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids


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


def test_a_busy_consumer_is_passed_over(q: QueueFixture) -> None:
    """A-16: it is its turn again when it has credit, and not before."""
    first, second = q.join(1), q.join(1)
    assert q.put("1").handed_to == first.name
    assert q.put("2").handed_to == second.name
    second.wait(1)
    second.ack("2")
    assert second.pull() == []
    assert q.put("3").handed_to == second.name
    assert q.put("4").handed_to == ""
    first.wait(1)
    first.ack("1")
    assert ids(first.pull()) == ["4"]


def test_a_pull_that_leaves_work_passes_it_on(q: QueueFixture) -> None:
    """Q-42: the one that was notified of two jobs takes one, and wants no more."""
    q.queue.pause()
    credit = WindowCredit(2)
    high, low = q.queue.consumer(credit=credit, renew=False).register(), q.join(1)
    q.put("1", "2")
    q.queue.resume()
    assert (q.state(high), q.state(low)) == ("notified", "interested")
    credit.clear()
    credit.add(1, UNLIMITED)
    assert ids(high.pull()) == ["1"]
    assert (q.state(high), q.state(low)) == ("not_interested", "notified")
    assert ids(low.pull()) == ["2"]
    high.close()
