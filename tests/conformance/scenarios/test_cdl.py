"""Curator's delay queue: never early, in due order, and nobody waits for a job that is not due."""

import random

from tests.support.due_jobs import MINUTE, take
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture


def test_CDL_01_a_job_with_a_delay_is_not_seen_before(q: QueueFixture) -> None:
    """C-24: in real time, by the consumer that waits."""
    consumer = q.join()
    assert consumer.pull() == []
    q.put("A", delay_ms=300)
    ((job, now),) = take(consumer, 1)
    assert now >= job.due_ms == job.enqueued_ms + 300


def test_CDL_02_a_job_that_is_never_due_holds_nothing_up(q: QueueFixture) -> None:
    """C-24."""
    q.put("never", delay_ms=2**31 - 1)
    consumer = q.join()
    assert consumer.pull() == []
    assert q.put("now").handed_to == consumer.name
    consumer.wait(PATIENCE)
    assert consumer.pull() == []


def test_CDL_03_jobs_come_in_the_order_of_their_due_times(q: QueueFixture) -> None:
    """C-24."""
    consumer = q.join()
    now = q.queue.counts().now
    for i in range(10):
        q.put(str(i), at_ms=now + random.randrange(100))
    taken = take(consumer, 10)
    dues = [job.due_ms for job, _ in taken if job.due_ms]
    assert dues == sorted(dues)
    assert all(now >= job.due_ms for job, now in taken)


def test_CDL_05_a_job_due_earlier_wakes_the_consumer_that_watches(q: QueueFixture) -> None:
    """A-03, C-24: and nobody else."""
    consumers = [q.join(1), q.join(1)]
    q.put("late", delay_ms=50 * MINUTE)
    (watcher,) = (consumer for consumer in consumers if q.unread(consumer))
    watcher.pull()
    assert watcher.timer_ms > 49 * MINUTE
    q.put("later", delay_ms=55 * MINUTE)
    assert q.unread(watcher) == []
    q.put("early", at_ms=(at_ms := q.queue.counts().now + 5 * MINUTE))
    assert q.unread(watcher) == [b"w"]
    watcher.pull()
    q.put("as early", at_ms=at_ms)
    assert q.unread(watcher) == []
    q.put("earlier", at_ms=at_ms - 1)
    assert q.unread(watcher) == [b"w"]
    watcher.pull()
    assert watcher.timer_ms <= 5 * MINUTE
    assert sum(c["state"] == "interested" for c in q.look().consumers.values()) == 2
