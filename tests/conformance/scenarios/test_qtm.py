"""Qpid's time to live, delays and attempts."""

import pytest

from rqueue.errors import JobExpired
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.due_jobs import take
from tests.support.queue_fixture import QueueFixture, every_kind, ids


def test_QTM_01_an_expired_job_is_not_delivered(q: QueueFixture) -> None:
    """Q-62: with and without a time to live."""
    expired = q.put("A", ttl=10)
    q.put("B")
    move_time(q.queue, 10_001)
    consumer = q.join()
    assert ids(consumer.pull()) == ["B"]
    assert expired.state() is JobState.EXPIRED
    with pytest.raises(JobExpired, match="A"):
        expired.result(0)
    assert [(row["id"], row["outcome"]) for row in q.look().history] == [("A", "expired")]
    assert q.queue.counts().meta["expired"] == "1"


def test_QTM_03_a_job_is_delivered_after_its_delay(q: QueueFixture) -> None:
    """Q-63: to the consumer that waits, in real time; another one is not held up."""
    consumer = q.join()
    assert consumer.pull() == []
    q.put("A", delay_ms=300)
    q.put("B")
    taken = {job.id: (job, now) for job, now in take(consumer, 2)}
    assert taken.keys() == {"A", "B"}
    job, now = taken["A"]
    assert now >= job.due_ms == job.enqueued_ms + 300


@every_kind
def test_QTM_05_a_job_that_fails_twice_becomes_a_dead_letter(q: QueueFixture, kind: str) -> None:
    """Q-66: it comes again before the next one."""
    q.put(*"01234", max_deliveries=2)
    consumer = q.join(1)
    seen = []
    while jobs := consumer.pull():
        (job,) = jobs
        seen.append(job.id)
        if int(job.id) % 2:
            consumer.ack(job)
        else:
            consumer.retry(job)
    assert "".join(seen) == "00122344"
    look = q.look()
    assert list(look.scores("dead")) == list("024")
    assert q.listed() == []


@every_kind
def test_QTM_06_browsing_counts_nothing(q: QueueFixture, kind: str) -> None:
    """Q-24, Q-66."""
    q.put("A")
    for _ in range(2):
        (shown,) = q.join(10, mode="browse").pull()
        assert (shown.deliveries, shown.attempts, shown.redelivered) == (0, 0, False)
    (job,) = q.join().pull()
    assert (job.deliveries, job.redelivered) == (0, False)


def test_QTM_08_a_scheduled_job_does_not_expire_before_it_is_due(q: QueueFixture) -> None:
    """Q-63: and then it does, where its time was over before: it counts from the enqueue."""
    q.queue.enqueue_puts([Put("A", b'["t"]', delay_ms=10_000, ttl_ms=5_000)])
    consumer = q.join()
    consumer.pull()
    move_time(q.queue, 7_000)
    q.renew(consumer)
    assert ids(consumer.pull()) == []
    assert execute(q.queue.redis, commands.show(q.queue.keys, "A")).state == "scheduled"
    move_time(q.queue, 4_000)
    assert consumer.pull() == []
    assert [(row["id"], row["outcome"]) for row in q.look().history] == [("A", "expired")]
