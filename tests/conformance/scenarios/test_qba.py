"""What Qpid's queues of every type do."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import InvalidName, QueueFull
from rqueue.model.job import JobState
from rqueue.protocol.commands import Put
from rqueue.testing import housekeeping, move_time
from tests.support.alerting import alerts
from tests.support.queue_fixture import QueueFixture, every_kind, every_place, ids, one_kind
from tests.support.two_queues import second


def test_QBA_01_a_queue_needs_a_name() -> None:
    """C-01."""
    with pytest.raises(InvalidName, match="queue name"):
        Queue("", "redis://127.0.0.1:1")


@every_kind
def test_QBA_02_a_consumer_comes_first_and_then_a_job(q: QueueFixture, kind: str) -> None:
    """Q-02, Q-17, Q-58."""
    consumer = q.join()
    assert q.queue.counts().interested == 1
    assert q.put("A").handed_to == consumer.name
    assert ids(consumer.pull()) == ["A"]
    consumer.ack("A")
    consumer.close()
    counts = q.queue.counts()
    assert (counts.interested, counts.notified, counts.not_interested) == (0, 0, 0)
    assert q.put("B").handed_to == ""
    assert q.listed() == ["B"]
    assert consumer.name not in q.look().consumers


@every_kind
@pytest.mark.parametrize("names", ["A", "AB"])
def test_QBA_03_jobs_come_first_and_then_a_consumer(q: QueueFixture, names: str, kind: str) -> None:
    """Q-02."""
    q.put(*names)
    consumer = q.join()
    assert "".join(ids(consumer.pull())) == names
    assert consumer.pull() == []


def test_QBA_04_a_held_job_is_not_delivered_until_its_time(q: QueueFixture) -> None:
    """Q-63."""
    consumer = q.join()
    assert consumer.pull() == []
    q.put("A", hold=True, delay_ms=200_000)
    assert consumer.pull() == [] and 0 < consumer.timer_ms <= 200_000
    assert q.queue.counts().scheduled == 1
    move_time(q.queue, 200_001)
    assert ids(consumer.pull()) == ["A"]


def test_QBA_05_whether_a_job_is_held_depends_on_the_queue(q: QueueFixture) -> None:
    """Q-63: one that holds none delivers it at once."""
    q.queue.configure(hold=False)
    consumer = q.join()
    assert consumer.pull() == []
    assert q.put("A", hold=True, delay_ms=200_000).handed_to == consumer.name
    assert ids(consumer.pull()) == ["A"]


@every_kind
def test_QBA_07_a_released_job_comes_again_in_its_place(q: QueueFixture, kind: str) -> None:
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


@every_kind
def test_QBA_09_releases_out_of_order_come_again_in_order(q: QueueFixture, kind: str) -> None:
    """Q-05."""
    q.put("A", "B", "C")
    consumer = q.join()
    consumer.pull()
    consumer.release("C")
    consumer.release("A")
    again = consumer.pull()
    assert ids(again) == ["A", "C"]
    assert all(job.redelivered for job in again)


@every_kind
def test_QBA_13_listing_leaves_out_what_is_gone(q: QueueFixture, kind: str) -> None:
    """Q-69."""
    q.put(*"0123")
    q.queue.cancel("1")
    assert ids(q.join(10, mode="browse").pull()) == list("023")
    assert q.queue.counts().ready == 3


@every_kind
def test_QBA_14_a_queue_is_cleared(q: QueueFixture, kind: str) -> None:
    """Q-69."""
    q.put(*"0123")
    q.queue.cancel("1")
    assert q.purge() == 3
    assert q.listed() == []
    counts = q.queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (0, 0, 0)


@one_kind
def test_QBA_15_an_alert_comes_at_a_depth(q: QueueFixture) -> None:
    """Q-72."""
    q.queue.configure(alert_depth=2)
    q.put("1")
    assert alerts(q) == []
    q.put("2")
    assert alerts(q) == [(2, 2)]


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (0, 10_000, [10_000, 10_000, 5_000]),
        (10_000, 0, [0, 15_000, 10_000]),
        (10_000, 20_000, [20_000, 15_000, 10_000]),
    ],
)
def test_QBA_17_bounds_of_the_time_to_live(
    q: QueueFixture, least: int, most: int, expected: list[int]
) -> None:
    """Q-62: the greatest time also holds for jobs that would live for ever, the least does not."""
    q.queue.configure(ttl_min=least / 1000, ttl_max=most / 1000)
    terms = {"for ever": 0, "long": 15_000, "short": 5_000}
    q.queue.enqueue_puts([Put(id, b'["t"]', ttl_ms=ttl_ms) for id, ttl_ms in terms.items()])
    lives = [
        job.header.expires_ms and job.header.expires_ms - job.enqueued_ms for job in q.join().pull()
    ]
    assert lives == expected


@every_kind
def test_QBA_18_the_oldest_waiting_job_counts_over_all_levels(q: QueueFixture, kind: str) -> None:
    """Q-72."""
    q.put("low", priority=1)
    for priority in (4, 9):
        move_time(q.queue, 1000)
        q.put(str(priority), priority=priority)
    oldest = q.queue.counts().oldest_enqueued_ms
    low = next(job for job in q.join().pull() if job.id == "low")
    assert oldest == low.enqueued_ms


@every_place
def test_QBA_19_a_queue_without_limits_takes_everything(q: QueueFixture) -> None:
    """Q-67: no overflow policy, no limit."""
    q.put("1", "2", "3", padding=100)
    assert q.queue.counts().ready == 3


def test_QBA_20_a_ring_keeps_the_newest(q: QueueFixture) -> None:
    """Q-67."""
    q.queue.configure(ring=4)
    for id in "12345":
        q.put(id)
        move_time(q.queue, 1000)
    counts = q.queue.counts()
    jobs = q.join().pull()
    assert (counts.ready, ids(jobs)) == (4, list("2345"))
    assert counts.oldest_enqueued_ms == jobs[0].enqueued_ms


def test_QBA_22_a_ring_refuses_what_can_never_fit(q: QueueFixture) -> None:
    """Q-67: nothing is stored, and nothing makes room for it. A ring without any room is none: 0 is
    no limit."""
    q.queue.configure(ring=10, ring_bytes=20)
    q.put("A", "B")
    with pytest.raises(QueueFull, match=r"1 job of 40 bytes never fits into .* takes 20 bytes"):
        q.put("C", padding=30)
    assert q.listed() == ["A", "B"]
    assert q.queue.job("C").state() is JobState.UNKNOWN
    q.put("D")
    assert q.listed() == ["B", "D"]


def test_QBA_28_expired_jobs_go_to_the_alternate_queue(q: QueueFixture) -> None:
    """Q-62, Q-66: which has a least time to live of its own."""
    other = QueueFixture(q.queue.at(f"{q.queue.name}-expired"))
    other.queue.configure(ttl_min=3600)
    q.queue.configure(expired_to=other.queue.name)
    q.put("A", ttl=0.001)
    assert q.queue.counts().ready == 1
    move_time(q.queue, 2)
    housekeeping(q.queue)
    assert (q.queue.counts().ready, other.queue.counts().ready) == (0, 1)
    assert other.listed() == ["A"]
    other.close()


@every_kind
def test_QBA_26_all_jobs_are_moved(q: QueueFixture, kind: str) -> None:
    """a) Q-69: in their order."""
    q.put("a", "b", "c")
    with second(q) as target:
        assert q.queue.move_all(target.queue.name) == 3
        assert (q.listed(), target.listed()) == ([], ["a", "b", "c"])
        assert q.queue.counts().ready == 0


@every_kind
def test_QBA_26_all_jobs_are_copied(q: QueueFixture, kind: str) -> None:
    """b) Q-69."""
    q.put("a", "b", "c")
    with second(q) as target:
        assert q.queue.copy_all(target.queue.name) == 3
        assert q.queue.copy_all(target.queue.name) == 0, "a copy has the id of its original"
        assert (q.listed(), target.listed()) == (["a", "b", "c"], ["a", "b", "c"])
