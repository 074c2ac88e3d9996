"""What each outcome counts and where the job is then (after Qpid's AMQChannel)."""

from rqueue.model.job import JobState
from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_QAK_17_a_release_a_failure_and_a_rejection(q: QueueFixture, kind: str) -> None:
    """Q-56: what is released is redelivered, uncounted, in its place; a failure counts; what is
    rejected is dead."""
    q.put("a", "b")
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert (job.id, job.redelivered, job.attempts) == ("a", False, 0)
    assert consumer.release(job)
    (job,) = consumer.pull()
    assert (job.id, job.redelivered, job.attempts) == ("a", True, 0)
    assert consumer.retry(job, delay=0)
    (job,) = consumer.pull()
    assert (job.id, job.redelivered, job.attempts) == ("a", True, 1)
    assert consumer.reject(job, "no")
    assert q.queue.job("a").state() is JobState.DEAD
    assert ids(consumer.pull()) == ["b"]
