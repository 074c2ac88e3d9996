"""A paused queue takes and hands nothing out."""

from tests.support.bench import Bench, ids


def test_nothing_is_handed_out_until_the_queue_runs_again(bench: Bench) -> None:
    """A-32: consumers that come during the pause."""
    assert bench.queue.pause()
    bench.put(*"0123456789")
    consumer = bench.join()
    assert consumer.pull() == []
    assert bench.queue.promote() == 0
    assert consumer.pull() == []
    assert bench.queue.resume()
    assert ids(consumer.pull()) == list("0123456789")


def test_a_consumer_that_was_there_waits_too(bench: Bench) -> None:
    """A-32."""
    consumer = bench.join()
    bench.queue.pause()
    bench.put(*"0123456789")
    assert (consumer.pull(), bench.told(consumer)) == ([], [])
    bench.queue.resume()
    assert bench.told(consumer) == [b"w"]
    assert ids(consumer.pull()) == list("0123456789")


def test_pausing_twice_is_no_change(bench: Bench) -> None:
    """A-32."""
    assert [bench.queue.pause(), bench.queue.pause()] == [True, False]
    assert [bench.queue.resume(), bench.queue.resume()] == [True, False]


def test_what_is_in_hands_may_be_settled_during_a_pause(bench: Bench) -> None:
    """A-32."""
    bench.put("A", "B", "C")
    consumer = bench.join(2)
    consumer.pull()
    bench.queue.pause()
    assert consumer.ack("A")
    assert consumer.release("B")
    assert consumer.pull() == []
    bench.queue.resume()
    assert ids(consumer.pull()) == ["B", "C"]


def test_without_a_pause_a_job_is_delivered_at_once(bench: Bench) -> None:
    """A-29."""
    bench.put("A")
    assert ids(bench.join().pull()) == ["A"]
