"""How the jobs that a consumer holds end."""

import pytest

from rqueue.errors import LifecycleError, NotRegistered, RegistrationLost
from rqueue.inspector.queues import queue_info
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.settling import retried
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids


def test_held_jobs_are_in_the_order_of_delivery(q: QueueFixture) -> None:
    """Q-55."""
    q.put(*"0123456789")
    consumer = q.join()
    consumer.pull()
    assert q.look().held == {consumer.name: list("0123456789")}
    counts = q.queue.counts()
    assert (counts.ready, counts.held) == (0, 10)


def test_one_ack_settles_one_and_many_settle_many(q: QueueFixture) -> None:
    """Q-55: in any order."""
    q.put(*"0123456789")
    consumer = q.join()
    consumer.pull()
    consumer.ack("4")
    assert q.look().held[consumer.name] == list("012356789")
    consumer.settle(ack=["7", "0", "1", "9"])
    assert q.look().held[consumer.name] == list("23568")
    consumer.settle(ack=list("23568"))
    assert q.look().jobs == {}


def test_a_job_counts_until_it_is_acked(q: QueueFixture) -> None:
    """Q-25."""
    q.put("A")
    consumer = q.join()
    (job,) = consumer.pull()
    assert q.queue.job("A").state() is JobState.HELD
    consumer.ack(job, 42)
    assert q.queue.job("A").result(0) == 42
    assert consumer.pull() == []


def test_recovering_gives_the_unsettled_again_in_order(q: QueueFixture) -> None:
    """Q-57."""
    q.put(*"0123")
    consumer = q.join(3)
    consumer.pull()
    consumer.ack("0")
    consumer.settle(release=["2", "1"])
    got = consumer.pull()
    assert ids(got) == list("123")
    assert [job.redelivered for job in got] == [True, True, False]


def test_each_outcome_counts_as_documented(q: QueueFixture) -> None:
    """Q-56, X-13: release does not count, retry does, reject is the end."""
    q.put("A")
    consumer = q.join()
    (job,) = consumer.pull()
    consumer.release(job)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries, job.redelivered) == (0, 1, True)
    consumer.retry(job)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries) == (1, 2)
    consumer.retry(job, charge=False)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries) == (1, 3)
    consumer.reject(job, "enough")
    assert q.queue.job("A").state() is JobState.DEAD
    counters = queue_info(q.queue.redis, q.queue.keys).counters
    # what was retried uncounted did not fail
    assert (counters["retried"], counters["released"], counters["rejected"]) == (1, 2, 1)


def test_a_failed_job_comes_again_before_the_later_ones_or_behind_them(q: QueueFixture) -> None:
    """X-05, C-06."""
    q.put("A", "B", "C")
    consumer = q.join(1)
    consumer.pull()
    consumer.retry("A")
    assert ids(consumer.pull()) == ["A"]
    consumer.retry("A", place="tail")
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        consumer.ack(jobs[0])
    assert seen == ["B", "C", "A"]


def test_a_retry_at_the_tail_notifies_who_waits(q: QueueFixture) -> None:
    """X-05, Q-37."""
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    other = q.join(1)
    consumer.retry("A", place="tail")
    assert q.state(other) == "notified"


def test_a_job_that_fails_once_runs_twice(q: QueueFixture) -> None:
    """C-06, C-07."""
    q.put("1")
    consumer = q.join()
    calls = 0
    while jobs := consumer.pull():
        calls += 1
        if calls == 1:
            consumer.retry(jobs[0], error={"type": "ValueError"})
        else:
            consumer.ack(jobs[0])
    assert calls == 2
    assert not q.look().hash("errors")


def test_a_retry_that_is_said_again_does_not_charge_the_next_delivery(q: QueueFixture) -> None:
    """H-18: its reply was lost, and this consumer held the job again."""
    q.put("A")
    consumer = q.join(1)
    (job,) = consumer.pull()
    said = retried(job, 0, {"type": "ValueError"}, "", True)
    (again,) = consumer.settle(retry=[said], pull=True)
    assert (again.deliveries, again.attempts) == (1, 1)
    consumer.settle(retry=[said])
    assert consumer.refused == ["A"]
    (seen,) = consumer.pull(recall=True)
    assert (seen.deliveries, seen.attempts) == (1, 1)
    assert consumer.retry(seen)
    (third,) = consumer.pull()
    assert (third.deliveries, third.attempts) == (2, 2)


def test_four_consumers_share_a_queue_and_take_nothing_twice(q: QueueFixture) -> None:
    """C-34, C-18."""
    names = [f"{i:03}" for i in range(300)]
    q.put(*names)
    consumers = [q.join(7) for _ in range(4)]
    seen: list[str] = []
    held = {c: c.pull() for c in consumers}
    while any(held.values()):
        for consumer in consumers:
            seen += ids(held[consumer])
            held[consumer] = consumer.settle(ack=held[consumer], pull=True)
    assert sorted(seen) == names
    assert q.queue.counts().held == 0


def test_a_settle_of_what_is_not_held_changes_nothing(q: QueueFixture) -> None:
    """H-08: it is named, and the others count. (A worker never names what it was not given.)"""
    q.put("A", "B")
    first, second = q.own(1), q.join(1)
    first.pull()
    second.pull()
    before = q.look()
    assert first.ack("B") is False
    assert first.ack("never") is False
    wrong = invariants.unchanged(before, q.look())
    assert not wrong
    first.settle(ack=["A", "B", "A"])
    assert first.refused == ["B", "A"]


def test_a_cancelled_job_is_taken_from_its_consumer(q: QueueFixture) -> None:
    """X-04: its consumer is notified, and that one's settle changes nothing."""
    q.put("A")
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert q.queue.cancel("A")
    (wake,) = consumer.wait(PATIENCE)
    assert (wake.kind, wake.id) == ("revoked", "A")
    assert consumer.ack(job) is False
    assert q.queue.job("A").state() is JobState.CANCELLED


def test_held_jobs_are_purged(q: QueueFixture) -> None:
    """X-04: many in one step, from anywhere in the list; jobs that live elsewhere are named."""
    names = [f"{i:03}" for i in range(400)]
    q.put(*names, "dead", "later", "waits")
    consumer, other = q.join(401, bytes=1_000_000), q.join(1)
    held = consumer.pull()
    consumer.settle(ack=["000"], reject=[("dead", {})])
    assert ids(other.pull()) == ["later"]
    some = [*names[:100:7], *names[150:250], *names[390:]]
    gone = some[1:]
    asked = [*some, "399", "dead", "later", "waits", "never"]
    assert q.purge_held(consumer, *asked) == (len(gone), ["later", "waits"])
    assert q.unread(consumer) == [b"X" + id.encode() for id in gone]
    assert [(wake.kind, wake.id) for wake in consumer.wait(PATIENCE)] == [("revoked", gone[0])]
    assert {str(q.queue.job(id).state()) for id in gone} == {"purged"}
    left = [job for job in held if job.id not in {*some, "dead"}]
    consumer.settle(ack=[*gone[:3], *ids(left)])
    assert consumer.refused == gone[:3]
    look = q.look()
    assert look.consumers[consumer.name]["held_bytes"] == "0"
    rows = [row for row in look.history if row["outcome"] == "purged"]
    assert [row["id"] for row in rows] == gone
    assert {row["worker"] for row in rows} == {look.consumers[consumer.name]["worker"]}


def test_an_id_is_taken_once_while_its_record_lasts(q: QueueFixture) -> None:
    """A-39."""
    assert q.put("A").created
    assert not q.put("A").created
    consumer = q.join()
    consumer.settle(ack=consumer.pull())
    assert not q.put("A").created
    assert q.queue.counts().ready == 0


@every_place
def test_the_life_of_a_consumer(q: QueueFixture) -> None:
    """C-02."""
    consumer = q.queue.consumer(renew=False)
    with pytest.raises(NotRegistered):
        consumer.pull()
    consumer.register()
    with pytest.raises(LifecycleError):
        consumer.register()
    consumer.close()
    with pytest.raises(NotRegistered):
        consumer.pull()
    consumer.close()


def test_a_consumer_of_a_dropped_term_learns_of_it(q: QueueFixture) -> None:
    """H-08."""
    consumer = q.join(1)
    consumer._state.term = "999"
    with pytest.raises(RegistrationLost):
        consumer.pull()


def test_browsing_takes_nothing_and_ends_at_the_tail(q: QueueFixture) -> None:
    """Q-29, Q-24."""
    browser = q.join(100, mode="browse")
    assert browser.pull() == []
    q.put(*"12345")
    assert ids(browser.pull()) == list("12345")
    assert browser.pull() == []
    got = q.join().pull()
    assert ids(got) == list("12345")
    assert {job.deliveries for job in got} == {0}


def test_a_browser_pages_through_all_levels_in_order(q: QueueFixture) -> None:
    """Q-69, Q-10."""
    for i in range(50):
        q.put(f"{i:02}", priority=4 + i % 2)
    browser = q.join(7, mode="browse")
    seen: list[str] = []
    while page := ids(browser.pull()):
        seen += page
    assert seen == [f"{i:02}" for i in [*range(1, 50, 2), *range(0, 50, 2)]]


def test_purging_empties_the_queue_and_leaves_held_jobs_alone(q: QueueFixture) -> None:
    """Q-69, X-04."""
    q.put(*"0123")
    q.put("later", delay_ms=60_000)
    consumer = q.join(1)
    consumer.pull()
    q.queue.cancel("1")
    assert q.purge() == 3
    counts = q.queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (0, 0, 1)
    assert q.queue.job("2").state() is JobState.PURGED
    assert consumer.ack("0")
    assert [row["outcome"] for row in q.look().history] == ["cancelled"] + ["purged"] * 3 + ["ack"]


def test_a_retry_of_what_was_cancelled_while_it_waited_is_refused(q: QueueFixture) -> None:
    """H-18: the outcome came late, the job had gone back and was cancelled there."""
    q.put("A", "B")
    consumer = q.join(1)
    consumer.pull()
    assert q.queue.cancel("B")
    call = commands.settle(
        q.queue.keys,
        consumer.name,
        consumer.term,
        None,
        retry=[commands.Retried("B", 0, "old", True, b"{}", 0)],
    )
    assert execute(q.queue.redis, call).refused == [b"B"]
