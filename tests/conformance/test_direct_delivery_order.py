"""Jobs that were delivered directly come before those pulled after them, in either order of
reading."""

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.protocol.wake import Wake
from rqueue.testing import move_time
from tests.support.drivers import MEMORY
from tests.support.queue_fixture import QueueFixture, ids


def deliver(q: QueueFixture, *names: str, **options: int) -> Consumer:
    """A consumer that waits; the first of these jobs is delivered to it, the others wait."""
    consumer = q.join(**options)
    assert consumer.pull() == []
    assert q.put(names[0]).handed_to == consumer.name
    for name in names[1:]:
        assert q.put(name).handed_to == ""
    return consumer


def test_a_pull_brings_what_was_delivered_first(q: QueueFixture) -> None:
    """A-13, Q-16, X-25."""
    assert ids(deliver(q, "1", "2", "3").pull()) == ["1", "2", "3"]


def test_no_job_passes_one_that_waits(q: QueueFixture) -> None:
    """A-13, Q-16: also where the consumer that could have it waits itself, and another one was
    notified of what came before."""
    q.queue.pause()
    first, second = q.join(1), q.join(1)
    q.put("1")
    q.queue.resume()
    assert (q.state(first), q.state(second)) == ("notified", "interested")
    assert q.put("2").handed_to == ""
    assert ids(second.pull()) == ["1"]
    assert ids(first.pull()) == ["2"]


def test_a_pull_brings_what_was_delivered_also_where_nothing_waits(q: QueueFixture) -> None:
    consumer = deliver(q, "1")
    assert ids(consumer.pull()) == ["1"]
    assert consumer.pull() == []
    assert consumer.held == 1


def test_a_drain_brings_what_was_delivered_first(q: QueueFixture) -> None:
    """X-25."""
    consumer = deliver(q, "1", "2", "3")
    assert [ids(jobs) for jobs in consumer.drain()] == [["1", "2", "3"]]


def test_a_drain_goes_on_behind_what_was_delivered_with_the_last_credit(q: QueueFixture) -> None:
    consumer = deliver(q, "1", "2", "3", jobs=1)
    seen = []
    for jobs in consumer.drain():
        seen.append(ids(jobs))
        consumer.settle(ack=jobs)
    assert seen == [["1"], ["2"], ["3"]]


def test_a_flush_brings_what_was_delivered_first(q: QueueFixture) -> None:
    assert ids(deliver(q, "1", "2", "3").flush()) == ["1", "2", "3"]


def test_a_settle_that_pulls_brings_what_was_delivered_first(q: QueueFixture) -> None:
    q.put("0")
    consumer = q.join()
    assert ids(consumer.pull()) == ["0"]
    q.put("1")
    q.put("2")
    assert ids(consumer.settle(ack=["0"], pull=True)) == ["1", "2"]


def test_a_delivery_that_is_read_late_is_not_given_twice(q: QueueFixture) -> None:
    """The wake-up was on its way while the pull asked for what is held."""
    consumer = q.join()
    assert consumer.pull() == []
    q.put("1", "2")
    element = q.queue.redis.lpop(q.queue.keys.wake(consumer.name))
    assert isinstance(element, bytes)
    assert ids(consumer.pull()) == ["1", "2"]
    assert not consumer.hear(Wake(consumer.name, element))
    consumer.settle(ack=["1", "2"])
    assert not consumer.hear(Wake(consumer.name, element))
    assert (consumer.held, consumer.pull()) == (0, [])


def test_a_recall_is_in_the_queues_order(q: QueueFixture) -> None:
    """Q-01, H-18: also where what is held was taken in another one."""
    q.put("1", "2", "3")
    first, second = q.join(1), q.join(3)
    assert ids(first.pull()) == ["1"]
    assert ids(second.pull()) == ["2", "3"]
    first.close()
    assert ids(second.pull()) == ["1"]
    assert ids(second.pull(recall=True)) == ["1", "2", "3"]


def test_what_was_released_comes_before_what_was_delivered_meanwhile(q: QueueFixture) -> None:
    """Q-01."""
    q.put("1", "2")
    consumer = q.join()
    consumer.pull()
    q.put("3")
    assert ids(consumer.settle(release=["1", "2"], pull=True)) == ["1", "2", "3"]


def test_a_delivered_job_comes_before_a_higher_one_that_is_pulled_later(q: QueueFixture) -> None:
    """X-25: it was taken first."""
    consumer = deliver(q, "low")
    q.put("high", priority=9)
    assert ids(consumer.pull()) == ["low", "high"]


def test_two_deliveries_between_two_pulls(q: QueueFixture) -> None:
    """A consumer that is late is passed over, waits again, and is handed another one."""
    consumer = deliver(q, "1")
    move_time(q.queue, 6000)
    q.renew(consumer)
    assert q.put("2").handed_to == consumer.name
    q.put("3")
    assert ids(consumer.pull()) == ["1", "2", "3"]


def test_a_cancelled_delivery_is_in_no_way(q: QueueFixture) -> None:
    consumer = deliver(q, "1", "2")
    q.queue.cancel("1")
    assert ids(consumer.pull()) == ["2"]
    assert consumer.held == 1


@pytest.mark.parametrize(
    ("q", "jobs"),
    [("consumer", 6500), ("asyncio", 3500), ("worker", 3500), (MEMORY, 3500)],
    indirect=["q"],
)
def test_a_recall_of_many_jobs_names_all_of_them(q: QueueFixture, jobs: int) -> None:
    """More than one reply can hold, or two; in between one is cancelled."""
    consumer = q.join(7000)
    for start in range(0, jobs, 500):
        q.put_all((f"{start + i:04}", {}) for i in range(500))
        while consumer.state == "notified" or consumer.held < start + 500:
            consumer.pull()
    held = ids(consumer.pull(recall=True))
    assert held == [f"{i:04}" for i in range(jobs)]
    assert consumer.held == jobs
    q.queue.cancel("0000")
    assert ids(consumer.pull(recall=True)) == held[1:]
