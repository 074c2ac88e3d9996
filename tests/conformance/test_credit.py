"""Credit in jobs and bytes: a window that comes back when jobs are settled."""

from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids

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


def test_a_job_bigger_than_the_window_passes_when_nothing_is_held(q: QueueFixture) -> None:
    """Q-49, X-11."""
    q.put("small")
    q.put("big", padding=300)
    consumer = q.join(10, bytes=200)
    assert ids(consumer.pull()) == ["small"]
    consumer.ack("small")
    assert ids(consumer.pull()) == ["big"]


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


def test_bytes_come_back_only_with_all_that_is_needed(q: QueueFixture) -> None:
    """Q-49, Q-52: 100, 100, then 250 bytes in a window of about 300."""
    q.put("1", "2", padding=100)
    q.put("3", padding=250)
    consumer = q.join(10, bytes=350)
    assert ids(consumer.pull()) == ["1", "2"]
    consumer.ack("1")
    assert consumer.pull() == []
    consumer.ack("2")
    assert ids(consumer.pull()) == ["3"]


def test_who_waits_for_bytes_passes_nothing_and_goes_on_when_another_takes_it(
    q: QueueFixture,
) -> None:
    """Q-52, QPID-1187."""
    first = q.join(10, bytes=300)
    q.queue.pause()
    q.put("1", padding=100)
    q.put("2", padding=200)
    q.put("3", padding=100)
    q.queue.resume()
    assert ids(first.pull()) == ["1"]
    assert first.pull() == []
    assert q.state(first) == "not_interested"
    second = q.join(1, bytes=300)
    assert ids(second.pull()) == ["2"]
    assert q.state(first) == "notified"
    assert ids(first.pull()) == ["3"]


def test_who_waits_for_bytes_goes_on_when_the_job_is_cancelled(q: QueueFixture) -> None:
    """Q-52."""
    q.put("1", padding=100)
    q.put("2", padding=200)
    q.put("3", padding=10)
    consumer = q.join(10, bytes=300)
    assert ids(consumer.pull()) == ["1"]
    q.queue.cancel("2")
    assert [wake.kind for wake in consumer.wait(1)] == ["pull"]
    assert ids(consumer.pull()) == ["3"]


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


def test_a_window_is_resized_up_and_down(q: QueueFixture) -> None:
    """Q-49, Q-53."""
    q.put(*"ABCDEF")
    consumer = q.join(3)
    assert ids(consumer.pull()) == ["A", "B", "C"]
    consumer.interest(4)
    assert ids(consumer.pull()) == ["D"]
    consumer.ack("A")
    assert ids(consumer.pull()) == ["E"]
    consumer.interest(2)
    consumer.settle(ack=["B", "C"])
    assert consumer.pull() == []
    consumer.ack("D")
    assert ids(consumer.pull()) == ["F"]
    consumer.close()
    assert q.queue.counts().ready == 2


def test_what_one_holds_others_do_not_see_until_it_leaves(q: QueueFixture) -> None:
    """Q-53, Q-58."""
    q.put(*"012345")
    first = q.join(3)
    first.pull()
    first.ack("0")
    first.pull()
    observer = q.join(1)
    assert ids(observer.pull()) == ["4"]
    observer.release("4")
    first.close()
    assert ids(observer.pull()) == ["1"]


def test_a_window_of_one_holds_nothing_back(q: QueueFixture) -> None:
    """Q-53."""
    q.put("A", "B")
    first, observer = q.join(1), q.join(1)
    (job,) = first.pull()
    first.ack(job)
    assert ids(observer.pull()) == ["B"]


def test_a_drain_takes_what_is_there_and_ends_without_credit(q: QueueFixture) -> None:
    """Q-54."""
    q.put("A")
    consumer = q.join(2)
    assert [ids(jobs) for jobs in consumer.drain()] == [["A"]]
    assert q.state(consumer) == "not_interested"
    q.put("B")
    assert q.told(consumer) == []
    consumer.ack("A")
    consumer.interest(1)
    assert ids(consumer.pull()) == ["B"]


def test_a_drain_of_an_empty_queue_ends_at_once(q: QueueFixture) -> None:
    """Q-54."""
    consumer = q.join(1)
    assert list(consumer.drain()) == []
    q.put("A")
    assert q.queue.counts().ready == 1


def test_a_stopped_consumer_gets_nothing_more(q: QueueFixture) -> None:
    """Q-54."""
    q.put("A", "B")
    consumer = q.join(1)
    consumer.pull()
    consumer.interest(0)
    consumer.ack("A")
    assert q.queue.counts().ready == 1
    assert q.told(consumer) == []


def test_jobs_delivered_directly_count_as_much_as_pulled_ones(q: QueueFixture) -> None:
    """Q-50: direct delivery looks at the same credit."""
    consumer = q.join(10, bytes=2 * (100 + HEADER))
    for name in "ABC":
        q.put(name, padding=100)
    q.renew(consumer)
    move_time(q.queue, 1)
    assert len(q.look().held[consumer.name]) == 1
    consumer.wait(1)
    assert ids(consumer.pull()) == ["B"]
    assert q.state(consumer) == "not_interested"
