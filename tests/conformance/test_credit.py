"""Credit in jobs and bytes: a window that comes back when jobs are settled."""

from rqueue.protocol.credit import SharedCredit
from rqueue.testing import move_time
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids
from tests.support.two_queues import second

HEADER = 64
"""More than the stored header of any job here."""


def test_a_window_in_jobs_is_used_up_and_comes_back(q: QueueFixture) -> None:
    """Q-49."""
    q.put("A", "B", "C")
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["A", "B"]
    assert (consumer.pull(), consumer.state) == ([], "not_interested")
    consumer.ack("A")
    assert ids(consumer.pull()) == ["C"]


def test_bytes_fit_strictly_and_both_limits_hold(q: QueueFixture) -> None:
    """Q-50."""
    q.put("A", "B", "C", padding=200)
    size = 2 * (200 + HEADER)
    consumer = q.join(3, bytes=size)
    assert ids(consumer.pull()) == ["A", "B"]
    assert consumer.state == "not_interested"
    q.put("D", "E", "F")
    consumer.settle(ack=["A", "B"])
    assert ids(consumer.pull()) == ["C", "D", "E"]


def test_who_waits_for_bytes_goes_on_when_the_job_is_purged(q: QueueFixture) -> None:
    """Q-52."""
    q.put("1", padding=100)
    q.put("2", padding=200)
    consumer = q.join(10, bytes=300)
    assert ids(consumer.pull()) == ["1"]
    q.purge()
    assert q.state(consumer) == "notified"


def test_who_has_no_credit_left_is_not_woken_for_bytes(q: QueueFixture) -> None:
    """Q-52: it waited once, and draws back before the job is gone."""
    q.put("1", padding=100)
    q.put("2", padding=200)
    consumer = q.join(10, bytes=300)
    consumer.pull()
    consumer.interest(0)
    q.queue.cancel("2")
    assert q.state(consumer) == "not_interested"


def test_bytes_of_a_revoked_job_are_freed_once(q: QueueFixture) -> None:
    """Q-50: the consumer settles a job that was cancelled while it held it, before it heard of
    it."""
    q.put(*"ABCDEF", padding=100)
    consumer = q.join(10, bytes=3 * (100 + 30))
    assert ids(consumer.pull()) == ["A", "B", "C"]
    q.queue.cancel("C")
    assert consumer.ack("C") is False
    assert ids(consumer.pull()) == ["D"]


def test_a_byte_limit_counts_what_was_taken_without_one(q: QueueFixture) -> None:
    """Q-50."""
    q.put(*"ABCDEF", padding=100)
    consumer = q.join(3)
    assert ids(consumer.pull()) == ["A", "B", "C"]
    consumer.interest(10, 2 * (100 + 30))
    assert consumer.pull() == []
    consumer.settle(ack=["A", "B"])
    assert ids(consumer.pull()) == ["D"]


def test_a_drain_takes_what_is_there_and_ends_without_credit(q: QueueFixture) -> None:
    """Q-54."""
    q.put("A")
    consumer = q.join(2)
    assert [ids(jobs) for jobs in consumer.drain()] == [["A"]]
    assert q.state(consumer) == "not_interested"
    q.put("B")
    assert q.unread(consumer) == []
    consumer.ack("A")
    consumer.interest(1)
    assert ids(consumer.pull()) == ["B"]


def test_a_drain_of_an_empty_queue_ends_at_once(q: QueueFixture) -> None:
    """Q-54."""
    consumer = q.join(1)
    assert list(consumer.drain()) == []
    q.put("A")
    assert q.queue.counts().ready == 1


def test_jobs_delivered_directly_count_as_much_as_pulled_ones(q: QueueFixture) -> None:
    """Q-50: direct delivery looks at the same credit."""
    consumer = q.join(10, bytes=2 * (100 + HEADER))
    for name in "ABC":
        q.put(name, padding=100)
    q.renew(consumer)
    move_time(q.queue, 1)
    assert len(q.look().held[consumer.name]) == 1
    consumer.wait(PATIENCE)
    assert ids(consumer.pull()) == ["B"]
    assert q.state(consumer) == "not_interested"


def test_shared_bytes_are_exceeded_by_one_job_of_who_held_nothing(q: QueueFixture) -> None:
    """Q-49, X-12: each consumer has room for one job of any size, so that none waits for the other
    queue's; who holds something gets what fits into what the others leave."""
    shared = SharedCredit(10, 1000)
    with second(q) as other:
        mine, its = q.join(credit=shared), other.join(credit=shared)
        q.put("1", "2", "3", padding=400)
        other.put("4", "5", padding=300)
        assert ids(mine.pull()) == ["1", "2"]
        assert ids(its.pull()) == ["4"]
        assert 1000 < shared.bytes_used < 1000 + 400
        assert ids(its.pull()) == []
        assert ids(mine.pull()) == []
        its.settle(ack=["4"])
        assert ids(its.pull()) == ["5"]
        assert 1000 < shared.bytes_used < 1000 + 400
