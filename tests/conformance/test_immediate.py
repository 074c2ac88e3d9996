"""Who may be given a job at once: immediate jobs, and those who get one and leave."""

import pytest

from rqueue.errors import ConsumerRefused, NoConsumer
from tests.support.queue_fixture import QueueFixture, ids, one_kind

pytestmark = one_kind


def test_a_paused_queue_has_nobody_who_takes_it(q: QueueFixture) -> None:
    """Q-19, A-32."""
    consumer = q.join(1)
    q.queue.pause()
    with pytest.raises(NoConsumer):
        q.put("A", immediate=True)
    q.queue.resume()
    assert q.put("A", immediate=True).handed_to == consumer.name


def test_what_waits_is_not_passed(q: QueueFixture) -> None:
    """Q-19, A-13: the consumer has credit, but would pull another one first."""
    consumer = q.join(1)
    q.queue.pause()
    q.put("A")
    q.queue.resume()
    with pytest.raises(NoConsumer):
        q.put("B", immediate=True)
    assert ids(consumer.pull(recall=True)) == ["A"]


def test_a_browser_takes_none(q: QueueFixture) -> None:
    """Q-19, Q-24."""
    q.join(10, mode="browse")
    with pytest.raises(NoConsumer):
        q.put("A", immediate=True)
    assert q.listed() == []


def test_a_full_queue_takes_what_does_not_wait(q: QueueFixture) -> None:
    """Q-19, Q-67: the limit counts what waits."""
    q.queue.configure(max_jobs=1)
    consumer = q.join(3)
    for id in "ABC":
        assert q.put(id, immediate=True).handed_to
        assert ids(consumer.pull(recall=True))[-1] == id
    assert q.queue.counts().held == 3


def test_a_get_is_refused_where_another_consumer_is_the_only_one(q: QueueFixture) -> None:
    """Q-25, Q-18."""
    q.queue.configure(strict=True)
    q.put("A")
    consumer = q.join(1)
    with pytest.raises(ConsumerRefused):
        q.queue.get()
    consumer.close()
    assert ids(filter(None, [q.queue.get()])) == ["A"]


def test_a_get_from_a_paused_queue_has_none(q: QueueFixture) -> None:
    """Q-25, A-32."""
    q.put("A")
    q.queue.pause()
    assert q.queue.get() is None
    assert q.listed() == ["A"]
