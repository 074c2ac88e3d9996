"""Strict order: level first, then position, for the whole life of a job."""

import random

from rqueue.client._sync.queue import Call
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids


def test_jobs_come_in_the_order_of_their_enqueue(q: QueueFixture) -> None:
    """Q-01, C-03."""
    q.put(*map(str, range(10)))
    consumer = q.join()
    assert ids(consumer.pull()) == list(map(str, range(10)))


def test_a_batch_keeps_its_order(q: QueueFixture) -> None:
    """C-20."""
    handles = q.queue.enqueue_many(Call("t", [i]) for i in range(600))
    consumer = q.join(600)
    got = consumer.pull() + consumer.pull()
    assert ids(got) == [handle.id for handle in handles]


def test_a_higher_job_that_comes_later_is_next(q: QueueFixture) -> None:
    """Q-12: nobody is ever past a job that arrives."""
    consumer = q.join(1)
    q.put("low1", "low2", priority=0)
    assert ids(consumer.pull()) == ["low1"] or consumer.wait(PATIENCE)
    q.put("high", priority=9)
    consumer.ack("low1")
    assert ids(consumer.pull()) == ["high"]


def test_releases_of_many_consumers_merge(q: QueueFixture) -> None:
    """Q-01: whichever consumer releases whichever job, at any time."""
    names = [f"{i:02}" for i in range(30)]
    q.put(*names)
    consumers = [q.join(10) for _ in range(3)]
    held = [(c, id) for c in consumers for id in ids(c.pull())]
    random.shuffle(held)
    for consumer, id in held:
        consumer.release(id)
    assert ids(q.join().pull()) == names


def test_a_closed_consumer_gives_all_back_in_order(q: QueueFixture) -> None:
    """Q-59, X-21: uncounted, before what came later."""
    q.put(*"12345")
    leaving = q.join()
    assert len(leaving.pull()) == 5
    leaving.interest(5)
    q.put("6")
    leaving.close()
    got = q.join().pull()
    assert ids(got) == list("123456")
    assert [job.redelivered for job in got] == [True] * 5 + [False]
    assert {job.attempts for job in got} == {0}


def test_counters_count_what_was_accepted_and_ended(q: QueueFixture) -> None:
    """Q-72."""
    q.put("1", "2", "3")
    consumer = q.join(2)
    first, _ = consumer.pull()
    counts = q.queue.counts()
    assert (counts.ready, counts.held, counts.meta["seq"]) == (1, 2, "3")
    consumer.ack(first)
    counts = q.queue.counts()
    assert (counts.ready, counts.held, counts.meta["acked"]) == (1, 1, "1")
