"""Curator's priority queue. In rqueue higher comes first, from 9 down to 0 (X-10)."""

import random

from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_CPR_01_random_priorities_come_out_sorted(q: QueueFixture, kind: str) -> None:
    """C-23, X-10: whatever came while the consumer was busy."""
    q.put("first", priority=9)
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["first"]
    given = [(random.randrange(10), i) for i in range(100)]
    for priority, i in given:
        q.put(f"{priority}-{i:02}", priority=priority)
    seen = []
    last = "first"
    while jobs := consumer.settle(ack=[last], pull=True):
        (last,) = ids(jobs)
        seen.append(last)
    assert seen == [f"{p}-{i:02}" for p, i in sorted(given, key=lambda one: (-one[0], one[1]))]


@every_kind
def test_CPR_02_a_higher_job_comes_behind_those_that_are_held_already(
    q: QueueFixture, kind: str
) -> None:
    """C-17, C-23: a consumer that holds two has the second one before the higher one."""
    q.put(*"0123456789", priority=4)
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["0", "1"]
    q.put("1000", priority=9)
    assert ids(consumer.settle(ack=["0"], pull=True)) == ["1000"]
    assert ids(consumer.settle(ack=["1", "1000"], pull=True)) == ["2", "3"]


def test_CPR_04_what_comes_while_a_job_is_processed_is_sorted_in(q: QueueFixture) -> None:
    """C-17: all but the one that is held."""
    consumer = q.join(1)
    q.put("0", priority=1)
    q.put("high", priority=8)
    q.put(*"123456789", priority=1)
    (job,) = consumer.pull(recall=True)
    seen = [job.id]
    while jobs := consumer.settle(ack=[seen[-1]], pull=True):
        seen += ids(jobs)
    assert seen == ["0", "high", *"123456789"]


@every_kind
def test_CPR_06_a_retried_job_keeps_its_priority(q: QueueFixture, kind: str) -> None:
    """C-06."""
    consumer = q.join(1)
    q.put("x", priority=5)
    consumer.pull(recall=True)
    q.queue.pause()
    consumer.retry("x")
    q.put("y", priority=6)
    q.queue.resume()
    (job,) = consumer.pull()
    assert job.id == "y"
    consumer.ack(job)
    assert ids(consumer.pull()) == ["x"]
