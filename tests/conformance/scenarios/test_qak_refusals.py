"""The ways in which a consumer does not do a job (after Qpid's AMQChannel)."""

from rqueue.model.job import JobState
from tests.support.queue_fixture import QueueFixture


def test_QAK_17_what_is_released_comes_again_uncounted(q: QueueFixture) -> None:
    """a) Q-56: in its place."""
    q.put("A", "B")
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert consumer.release(job)
    (again,) = consumer.pull()
    assert (again.id, again.redelivered, again.header.attempts) == ("A", True, 0)


def test_QAK_17_what_is_retried_counts(q: QueueFixture) -> None:
    """b) Q-56."""
    q.put("A", "B")
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert consumer.retry(job)
    (again,) = consumer.pull()
    assert (again.id, again.redelivered, again.header.attempts) == ("A", True, 1)


def test_QAK_17_what_is_refused_is_for_others(q: QueueFixture) -> None:
    """c) Q-08: it is not offered to this consumer again, another one gets it."""
    q.put("A", "B")
    consumer, other = q.join(2), q.join(1)
    job, _ = consumer.pull()
    assert consumer.refuse(job)
    assert consumer.pull() == []
    (taken,) = other.pull()
    assert (taken.id, taken.header.attempts) == ("A", 0)


def test_QAK_17_what_is_rejected_is_a_dead_letter(q: QueueFixture) -> None:
    """d) Q-56."""
    handle = q.put("A")
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert consumer.reject(job, "no")
    assert handle.state() is JobState.DEAD
    assert consumer.pull() == []
