"""Strict order: level first, then position, for the whole life of a job."""

import random

import pytest

from rqueue.client._sync.queue import Call, Queue
from rqueue.errors import InvalidName
from rqueue.model.envelope import unpack
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids


def test_a_queue_needs_a_name() -> None:
    """C-01."""
    with pytest.raises(InvalidName, match="queue name"):
        Queue("", "redis://127.0.0.1:1")


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


def test_ids_have_no_say_in_the_order(q: QueueFixture) -> None:
    """C-25."""
    names = [str(random.random()) for _ in range(100)]
    q.put(*names)
    assert ids(q.join().pull()) == names


def test_higher_levels_come_first_and_each_keeps_its_order(q: QueueFixture) -> None:
    """Q-10, A-15."""
    for i in range(50):
        q.put(f"{i % 10}-{i:02}", priority=i % 10)
    got = ids(q.join().pull())
    assert got == sorted(got, key=lambda id: (-int(id[0]), int(id[2:])))
    assert len(got) == 50


def test_three_levels_map_ten_priorities(q: QueueFixture) -> None:
    """Q-11: up to 3 is the lowest of three levels, 4 the middle, 5 and more the highest."""
    q.queue.configure(priorities=3)
    given = [(1, 9), (2, 4), (3, 0), (4, 0), (5, 4), (6, 9), (7, 4), (8, 9), (9, 0)]
    for id, priority in given:
        q.put(str(id), priority=priority)
    assert "".join(ids(q.join().pull())) == "168257349"


def test_equal_priorities_are_first_in_first_out(q: QueueFixture) -> None:
    """A-15."""
    for group, priority in (("abc", 0), ("def", 7), ("ghi", 3), ("j", 9)):
        q.put(*group, priority=priority)
    assert "".join(ids(q.join().pull())) == "jdefghiabc"


def test_a_higher_job_that_comes_later_is_next(q: QueueFixture) -> None:
    """Q-12: nobody is ever past a job that arrives."""
    consumer = q.join(1)
    q.put("low1", "low2", priority=0)
    assert ids(consumer.pull()) == ["low1"] or consumer.wait(1)
    q.put("high", priority=9)
    consumer.ack("low1")
    assert ids(consumer.pull()) == ["high"]


def test_a_consumer_that_enqueues_higher_jobs_meets_them_next(q: QueueFixture) -> None:
    """Q-12, with one job held all the time."""
    q.put("0", priority=0)
    consumer = q.join(1)
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        if len(seen) < 5:
            q.put(str(len(seen)), priority=4)
        consumer.ack(jobs[0])
    assert seen == ["0", "1", "2", "3", "4"]


def test_released_jobs_come_again_in_their_places(q: QueueFixture) -> None:
    """Q-03: before everything that arrived later, marked as redelivered."""
    q.put("A", "B", "C")
    consumer = q.join(3)
    first = consumer.pull()
    assert not any(job.redelivered for job in first)
    q.put("D")
    consumer.settle(ack=["B"], release=["A"])
    again = consumer.pull()
    assert ids(again) == ["A", "D"]
    assert [job.redelivered for job in again] == [True, False]


def test_releases_out_of_order_come_again_in_order(q: QueueFixture) -> None:
    """Q-05."""
    q.put("A", "B", "C")
    consumer = q.join()
    consumer.pull()
    consumer.release("C")
    consumer.release("A")
    again = consumer.pull()
    assert ids(again) == ["A", "C"]
    assert all(job.redelivered for job in again)


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


def test_cancelled_jobs_leave_the_others_where_they_are(q: QueueFixture) -> None:
    """A-38: any place, any level."""
    names = [f"{i:02}" for i in range(60)]
    for i, name in enumerate(names):
        q.put(name, priority=i % 10)
    gone = names[::3]
    random.shuffle(gone)
    assert all(q.queue.cancel(name) for name in gone)
    assert q.queue.counts().ready == 40
    left = [name for name in names if name not in gone]
    assert ids(q.join().pull()) == sorted(left, key=lambda name: (-(int(name) % 10), name))


def test_the_oldest_waiting_job_counts_over_all_levels(q: QueueFixture) -> None:
    """Q-72."""
    q.put("low", priority=1)
    for priority in (4, 9):
        move_time(q.queue, 1000)
        q.put(str(priority), priority=priority)
    oldest = q.queue.counts().oldest_enqueued_ms
    low = next(job for job in q.join().pull() if job.id == "low")
    assert oldest == low.enqueued_ms


def test_a_queue_without_limits_takes_everything(q: QueueFixture) -> None:
    """Q-67: no overflow policy, no limit."""
    q.put("1", "2", "3", padding=100)
    assert q.queue.counts().ready == 3


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


def test_names_and_bodies_of_any_text_survive(q: QueueFixture) -> None:
    """H-03."""
    odd = ["a b", "{x}", "_", "日本", "per%cent", "x" * 512, "1,2;3"]
    bodies = ["", "\0\x01", "é" * 1000, "y" * 1_000_000, "]", '"', ";"]
    for id, body in zip(odd, bodies, strict=True):
        q.queue.send("t", [body], None, Options(id=id))
    got = q.join().pull()
    assert ids(got) == odd
    for body, job in zip(bodies, got, strict=True):
        assert unpack(job.body)[1] == [body]


@pytest.mark.parametrize("name", ["a b", "{x}y", "}", "日本", "*?[a]\\", "100%"])
def test_queues_of_any_name_are_apart(q: QueueFixture, name: str) -> None:
    """H-03, H-02."""
    other = q.queue.at(f"{q.queue.name} {name}")
    there = QueueFixture(other)
    there.put("there")
    q.put("here")
    assert ids(there.join().pull()) == ["there"]
    assert ids(q.join().pull()) == ["here"]
    there.close()
