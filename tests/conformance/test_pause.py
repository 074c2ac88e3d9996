"""A paused queue accepts jobs and delivers none."""

from tests.support.queue_fixture import QueueFixture, every_place, ids


@every_place
def test_pausing_twice_is_no_change(q: QueueFixture) -> None:
    """A-32."""
    assert [q.queue.pause(), q.queue.pause()] == [True, False]
    assert [q.queue.resume(), q.queue.resume()] == [True, False]


def test_held_jobs_may_be_settled_during_a_pause(q: QueueFixture) -> None:
    """A-32."""
    q.put("A", "B", "C")
    consumer = q.join(2)
    consumer.pull()
    q.queue.pause()
    assert consumer.ack("A")
    assert consumer.release("B")
    assert consumer.pull() == []
    q.queue.resume()
    assert ids(consumer.pull()) == ["B", "C"]
