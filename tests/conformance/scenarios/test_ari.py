"""Artemis's ring queue."""

from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids


def displaced(q: QueueFixture) -> int:
    return int(q.queue.counts().meta.get("displaced", "0"))


def test_ARI_01_a_ring_of_one(q: QueueFixture) -> None:
    """A-24."""
    q.queue.configure(ring=1)
    consumer = q.join(1)
    for i in range(25):
        consumer.pull()
        q.queue.pause()
        q.put(f"a{i}", f"b{i}")
        assert (q.queue.counts().ready, displaced(q)) == (1, i + 1)
        q.queue.resume()
        assert ids(consumer.pull()) == [f"b{i}"]
        consumer.ack(f"b{i}")


def test_ARI_02_in_delivery_ones_do_not_count_and_what_comes_back_is_dropped(
    q: QueueFixture,
) -> None:
    q.queue.configure(ring=1)
    q.put("h0")
    consumer = q.join(1)
    (job,) = consumer.pull()
    q.put("h1")
    counts = q.queue.counts()
    assert (counts.held, counts.ready, displaced(q)) == (1, 1, 0)
    consumer.settle(release=[job])
    assert (q.queue.counts().ready, displaced(q)) == (1, 1)
    assert ids(consumer.pull()) == ["h1"]


@every_place
def test_ARI_04_two_scheduled_in_a_ring_of_one(q: QueueFixture) -> None:
    q.queue.configure(ring=1)
    q.put("a", "b", delay_ms=5000)
    assert (q.queue.counts().scheduled, q.queue.counts().ready) == (2, 0)
    move_time(q.queue, 6000)
    execute(q.queue.redis, commands.promote(q.queue.keys, []))
    counts = q.queue.counts()
    assert (counts.scheduled, counts.ready, displaced(q)) == (0, 1, 1)
    assert q.queue.job("a").state() is JobState.DISPLACED


@every_place
def test_ARI_06_the_default_from_settings(q: QueueFixture) -> None:
    """A queue has the limit that it was given, others have none."""
    q.put(*(str(n) for n in range(5)))
    assert q.queue.counts().ready == 5
    q.queue.configure(ring=100)
    assert q.queue.counts().meta["ring_jobs"] == "100"
    assert q.queue.counts().ready == 5


def test_ARI_07_a_non_destructive_ring(q: QueueFixture) -> None:
    """Browsers see the newest one each time."""
    q.queue.configure(ring=1)
    browser = q.join(10, mode="browse")
    for i in range(6):
        q.put(str(i))
        assert ids(browser.pull()) == [str(i)]
        assert (q.queue.counts().ready, displaced(q)) == (1, i)
    browser.close()
    assert q.queue.counts().held == 0
