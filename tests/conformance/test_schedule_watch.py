"""One consumer watches the schedule for all, and is notified of what is due earlier."""

from rqueue.protocol.commands import Put
from tests.support.due_jobs import MINUTE, pass_minutes
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids


def test_one_consumer_watches_for_all(q: QueueFixture) -> None:
    """A-03: no due time is returned to the others."""
    consumers = [q.join(1) for _ in range(3)]
    q.put("A", delay_ms=MINUTE)
    for consumer in consumers:
        consumer.pull()
    assert sum(consumer.timer_ms >= 0 for consumer in consumers) == 1


def test_the_watch_is_handed_on(q: QueueFixture) -> None:
    """A-03: by who takes a job, who leaves, and who draws back."""
    consumers = [q.join(1) for _ in range(4)]
    q.put("A", delay_ms=MINUTE)
    for consumer in consumers:
        consumer.pull()

    def watcher() -> str:
        for consumer in consumers:
            if q.unread(consumer):
                consumer.pull(recall=True)
        snapshot = q.look()
        assert snapshot.meta["timer"] in snapshot.scores("interested")
        return snapshot.meta["timer"]

    by_name = {consumer.name: consumer for consumer in consumers}
    by_name[watcher()].interest(0)
    leaving = watcher()
    by_name[leaving].close()
    consumers.remove(by_name[leaving])
    left = watcher()
    while (taker := q.put(f"now{len(q.look().jobs)}").handed_to) != left:
        assert taker
    assert q.look().scores("interested") == {}


def test_a_settle_without_a_pull_keeps_the_watch(q: QueueFixture) -> None:
    """A-03."""
    consumer = q.join(5)
    q.put("now")
    consumer.wait(PATIENCE)
    q.put("later", delay_ms=MINUTE)
    consumer.pull()
    assert consumer.timer_ms > 0
    consumer.ack("now")
    assert consumer.timer_ms > 0


def test_after_a_pause_a_consumer_watches_again(q: QueueFixture) -> None:
    """A-03, A-32: the one that watched looked during the pause, and learned nothing."""
    consumer = q.join(1)
    q.put("A", delay_ms=MINUTE)
    consumer.pull()
    q.queue.pause()
    pass_minutes(q, 2)
    assert (consumer.pull(), consumer.timer_ms) == ([], -1)
    q.queue.resume()
    assert q.state(consumer) == "notified"
    assert ids(consumer.pull()) == ["A"]


def test_a_job_for_now_and_one_for_later_wake_no_more_than_they_need(q: QueueFixture) -> None:
    """Q-37, H-16: one for the job, and one more at the most to take the watch over."""
    consumers = [q.join(1) for _ in range(6)]
    q.put("later", delay_ms=50 * MINUTE)
    for consumer in consumers:
        consumer.pull()
    watcher = q.look().meta["timer"]
    for consumer in consumers:
        if consumer.name != watcher:
            consumer.pull()  # now the one that watches is the first in line
    q.queue.enqueue_puts([Put("now", b"[]"), Put("soon", b"[]", delay_ms=MINUTE)])
    assert sum(map(len, map(q.unread, consumers))) <= 2
