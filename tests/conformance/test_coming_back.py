"""What comes back to queues of each kind: in its place, or not at all."""

from rqueue.testing import move_time
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids, one_kind

pytestmark = one_kind


def test_what_expired_meanwhile_is_not_delivered_again(q: QueueFixture) -> None:
    """Q-62 (after Qpid's testReleaseMessageThatBecomesExpiredIsNotRedelivered)."""
    q.put("A", ttl=10)
    q.put("B")
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["A", "B"]
    move_time(q.queue, 10_001)
    consumer.release("A")
    assert consumer.pull() == []
    assert q.queue.job("A").state() == "expired"


def test_only_what_was_delivered_is_marked(q: QueueFixture) -> None:
    """Q-57, Q-59."""
    q.put("A", "B")
    q.join(1).pull()
    q.put("C")
    first = q.join(1)
    first.pull()
    first.close()
    assert [job.redelivered for job in q.join(2).pull()] == [True, False]


def test_recovered_jobs_come_in_order_without_what_was_acked(q: QueueFixture) -> None:
    """Q-57 (after Qpid's RecoverTest)."""
    q.put("A", "B", "C", "D")
    consumer = q.join(4)
    got = [consumer.receive(PATIENCE) for _ in range(3)]
    consumer.ack("B")
    assert consumer.recover() == 2
    again = [job for job in (consumer.receive(PATIENCE) for _ in range(3)) if job]
    assert ids(again) == ["A", "C", "D"] and None not in got
    assert [job.redelivered for job in again] == [True, True, False]
    assert q.queue.counts().dead == 0


def test_a_group_goes_on_with_the_job_that_came_back(q: QueueFixture) -> None:
    """Q-65: it is up to the first who asks."""
    q.put("A", "B", group="g")
    q.put("C", group="h")
    one, two = q.join(2), q.join(2)
    assert ids(one.pull()) == ["A", "C"] and two.pull() == []
    one.close()
    assert ids(two.pull()) == ["A", "C"]
    two.retry("A")
    assert ids(two.pull()) == ["A"]
    two.ack("A")
    assert ids(two.pull()) == ["B"]


def test_a_group_waits_goes_on_or_gives_up_as_its_first_job_says(q: QueueFixture) -> None:
    """Q-65: for the pause of a retry, past it to the tail, or behind a dead letter."""
    consumer = q.join(1)
    q.put("A", "B", group="waits")
    assert ids(consumer.pull(recall=True)) == ["A"]
    consumer.retry("A", delay=60)
    assert consumer.pull() == []
    move_time(q.queue, 60_001)
    assert ids(consumer.pull()) == ["A"]
    consumer.retry("A", delay=60, place="tail")
    assert ids(consumer.pull()) == ["B"], "what is to come behind the others holds them up no more"
    consumer.reject("B", "broken")
    move_time(q.queue, 60_001)
    assert ids(consumer.pull()) == ["A"]


def test_a_value_that_comes_back_meets_a_newer_one(q: QueueFixture) -> None:
    """Q-15, X-17: of another level too."""
    q.put("1", key="k", priority=9)
    consumer = q.join(1)
    consumer.pull()
    q.put("2", key="k", priority=0)
    q.put("3", key="other")
    consumer.release("1")
    assert ids(consumer.pull()) == ["3"]
    consumer.ack("3")
    assert ids(consumer.pull()) == ["2"]
    assert q.queue.job("1").state() == "displaced"


def test_a_sort_key_says_where_it_comes_back(q: QueueFixture) -> None:
    """Q-14 (after Qpid's testGetSortedQueueWithAcks)."""
    for key in "bda":
        q.put(key, sort_key=key)
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["a", "b"]
    q.put("c", sort_key="c")
    consumer.settle(ack=["a"], release=["b"])
    assert ids(consumer.pull()) == ["b", "c"]


def test_a_successor_begins_with_what_was_not_acked(q: QueueFixture) -> None:
    """A-28."""
    q.queue.configure(live_consumers=1)
    first, second = q.join(2), q.join(2)
    q.put("A", "B", "C")
    assert ids(first.pull(recall=True)) == ["A", "B"]
    first.ack("A")
    assert second.pull() == []
    first.close()
    assert ids(second.pull()) == ["B", "C"]


def test_a_job_that_fails_for_ever_stays_as_small_as_it_is(q: QueueFixture) -> None:
    """C-06 (after Curator's testRetryAfterFailure_Curator56)."""
    q.queue.configure(max_deliveries=0)
    q.put("A")
    consumer = q.join(1)
    sizes = set()
    for _ in range(150):
        (job,) = consumer.pull()
        sizes.add(len(job.value))
        consumer.retry(job)
    assert max(sizes) - min(sizes) < 20, "its counters grow by digits"


def test_a_job_keeps_its_priority_at_the_tail(q: QueueFixture) -> None:
    """C-06, A-19."""
    q.put("A", priority=5)
    consumer = q.join(1)
    consumer.pull()
    q.put("B", priority=5)
    q.put("C", priority=4)
    consumer.retry("A", place="tail")
    q.put("D", priority=5)
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        consumer.settle(ack=jobs)
    assert seen == ["B", "A", "D", "C"]
