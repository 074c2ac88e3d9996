"""Artemis's priorities."""

import random

from rqueue.protocol.commands import Put
from tests.support.queue_fixture import QueueFixture, every_kind, ids


def test_APR_01_the_front_is_last_in_first_out_and_the_tail_first_in_first_out(
    q: QueueFixture,
) -> None:
    """A-15, A-17: of one level."""
    q.queue.pause()
    for tail, head in zip("abcdefghij", "klmnopqrst", strict=True):
        q.put(tail, priority=7)
        q.put(head, priority=7)
        q.queue.move_to_front(head)
    q.queue.resume()
    consumer = q.join()
    assert "".join(ids(consumer.pull())) == "tsrqponmlkabcdefghij"
    assert consumer.pull() == []


@every_kind
def test_APR_03_cancelled_jobs_leave_the_others_where_they_are(q: QueueFixture, kind: str) -> None:
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


def test_APR_04_the_highest_comes_first_however_many_wait(q: QueueFixture) -> None:
    """A-15."""
    q.queue.enqueue_puts([Put(f"5-{i:03}", b"[]", 5) for i in range(777)])
    q.queue.enqueue_puts([Put(f"6-{i:03}", b"[]", 6) for i in range(333)])
    consumer = q.join(2000)
    seen: list[str] = []
    while jobs := consumer.pull():
        seen += ids(jobs)
    assert seen == [f"6-{i:03}" for i in range(333)] + [f"5-{i:03}" for i in range(777)]


@every_kind
def test_APR_05_equal_priorities_are_first_in_first_out(q: QueueFixture, kind: str) -> None:
    """A-15."""
    for group, priority in (("abc", 0), ("def", 7), ("ghi", 3), ("j", 9)):
        q.put(*group, priority=priority)
    assert "".join(ids(q.join().pull())) == "jdefghiabc"


@every_kind
def test_APR_07_an_ack_of_one_says_nothing_of_the_others(q: QueueFixture, kind: str) -> None:
    """Q-55: acked out of the order of sending."""
    consumer = q.join()
    for i in range(10):
        q.put(str(i), priority=i)
    consumer.pull(recall=True)
    consumer.ack("9")
    consumer.close()
    assert "".join(ids(q.join().pull())) == "876543210"
