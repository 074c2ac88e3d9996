"""Artemis's pause, and when delivery begins."""

from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_APA_01_nothing_is_delivered_until_the_queue_runs_again(q: QueueFixture, kind: str) -> None:
    """A-32: consumers that come during the pause."""
    assert q.queue.pause()
    q.put(*"0123456789")
    consumer = q.join()
    assert consumer.pull() == []
    assert q.queue.promote() == 0
    assert consumer.pull() == []
    assert q.queue.resume()
    assert ids(consumer.pull()) == list("0123456789")


@every_kind
def test_APA_02_a_consumer_that_was_there_waits_too(q: QueueFixture, kind: str) -> None:
    """A-32."""
    consumer = q.join()
    q.queue.pause()
    q.put(*"0123456789")
    assert (consumer.pull(), q.unread(consumer)) == ([], [])
    q.queue.resume()
    assert q.unread(consumer) == [b"w"]
    assert ids(consumer.pull()) == list("0123456789")


def test_APA_06_without_a_pause_a_job_is_delivered_at_once(q: QueueFixture) -> None:
    """A-29."""
    q.put("A")
    assert ids(q.join().pull()) == ["A"]
