"""Qpid's overflow policies: the ring."""

from tests.support.queue_fixture import QueueFixture, ids


def test_QOV_01_ring(q: QueueFixture) -> None:
    """Q-67."""
    q.queue.configure(ring=2)
    q.put("1", "2", "3")
    assert ids(q.join().pull()) == ["2", "3"]


def test_QOV_02_a_ring_with_an_acquired_oldest(q: QueueFixture) -> None:
    """What is held does not count and is not taken away: of the others the newest stays."""
    q.queue.configure(ring=1)
    q.put("1")
    consumer = q.join(1)
    consumer.pull()
    for id in ("2", "3"):
        q.put(id)
        counts = q.queue.counts()
        assert counts.held + counts.ready == 2
    assert ids(q.join().pull()) == ["3"]
    assert consumer.ack("1")


def test_QOV_04_a_lower_limit(q: QueueFixture) -> None:
    """The oldest go until it holds; below it nothing does."""
    q.put(*"0123456789")
    q.queue.configure(ring=20)
    assert q.queue.counts().ready == 10
    q.queue.configure(ring=5)
    assert ids(q.join().pull()) == list("56789")
