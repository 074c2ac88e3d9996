"""Jobs that fail too often, or for good."""

import orjson

from rqueue.model.job import JobState
from tests.support.failing import fail_all
from tests.support.queue_fixture import QueueFixture


def test_the_queue_s_limit_holds_for_jobs_without_their_own(q: QueueFixture) -> None:
    """A-22."""
    q.queue.configure(max_deliveries=2)
    q.put("plain")
    q.put("own", max_deliveries=3)
    assert fail_all(q, 4) == [["plain", "own"], ["plain", "own"], ["own"], []]


def test_without_a_limit_nothing_dies(q: QueueFixture) -> None:
    """A-22."""
    q.queue.configure(max_deliveries=0)
    q.put("A")
    assert fail_all(q, 50) == [["A"]] * 50
    assert q.queue.counts().dead == 0


def test_every_attempt_s_error_is_kept(q: QueueFixture) -> None:
    """A-22."""
    q.put("A", max_deliveries=3)
    fail_all(q, 3)
    lines = q.look().hash("errors")[b"A"].splitlines()
    assert [orjson.loads(line)["message"] for line in lines] == ["round 0", "round 1", "round 2"]


def test_a_rejected_job_is_dead_at_once_with_the_reason(q: QueueFixture) -> None:
    """Q-56."""
    q.put("A")
    consumer = q.join()
    (job,) = consumer.pull()
    consumer.reject(job, "no such customer")
    cause = orjson.loads(q.look().hash("causes")[b"A"])
    assert (cause["message"], cause["kind"]) == ("no such customer", "rejected")


def test_a_dead_letter_lives_again_at_the_tail(q: QueueFixture) -> None:
    """A-38: with its attempts counted from nothing."""
    q.put("A", max_deliveries=1)
    fail_all(q, 1)
    q.put("B")
    assert q.requeue("A", "B", "never") == 1
    assert q.queue.job("A").state() is JobState.READY
    first, second = q.join().pull()
    assert (first.id, second.id) == ("B", "A")
    assert second.attempts == 0
    assert q.queue.counts().dead == 0


def test_who_waits_is_notified_of_a_dead_letter_that_lives_again(q: QueueFixture) -> None:
    """A-38, Q-37."""
    q.put("A", max_deliveries=1)
    consumer = q.join(2)
    consumer.pull()
    consumer.retry("A")
    assert consumer.pull() == []
    q.requeue("A")
    assert q.state(consumer) == "notified"


def test_a_dead_letter_s_id_stays_taken(q: QueueFixture) -> None:
    """A-39."""
    q.put("A", max_deliveries=1)
    fail_all(q, 1)
    assert not q.put("A").created
