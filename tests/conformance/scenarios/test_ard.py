"""Artemis's redelivery, dead letters and expiry."""

from collections.abc import Callable

import pytest

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobExpired, JobFailed
from rqueue.inspector import Inspector
from rqueue.model.job import JobState
from rqueue.model.job_filter import JobFilter
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from rqueue.tasks.retry import RetryPolicy
from rqueue.testing import frozen_time, housekeeping, move_time
from tests.support.due_jobs import pass_minutes
from tests.support.failing import fail_all
from tests.support.queue_fixture import QueueFixture, every_kind, ids, one_kind


@every_kind
def test_ARD_01_deliveries_and_attempts_are_counted(q: QueueFixture, kind: str) -> None:
    """A-20, A-19: browsing counts nothing, releasing is no attempt, failing is one."""
    q.queue.configure(max_deliveries=100)
    q.put(*"0123456789")
    browser = q.join(10, mode="browse")
    assert {job.deliveries for job in browser.pull()} == {0}
    for round_ in range(5):
        consumer = q.join(10)
        got = consumer.pull()
        assert "".join(ids(got)) == "0123456789"
        assert {(job.deliveries, job.attempts) for job in got} == {(round_, 0)}
        consumer.close()
    consumer = q.join(10)
    for round_ in range(5):
        got = consumer.pull()
        assert "".join(ids(got)) == "0123456789"
        assert {job.attempts for job in got} == {round_}
        for job in reversed(got):
            consumer.retry(job)


def test_ARD_03_attempts_are_counted_over_a_restart(
    private_server: EmbeddedRedis, make_q: Callable[[EmbeddedRedis], QueueFixture]
) -> None:
    """A-20."""
    q = make_q(private_server)
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    consumer.retry("A")
    consumer.close()
    private_server.kill()
    private_server.start()
    (job,) = q.join(1).pull()
    assert (job.deliveries, job.attempts, job.redelivered) == (1, 1, True)
    q.close()


def test_ARD_04_a_job_released_for_ever_never_dies(q: QueueFixture) -> None:
    """A-20, A-22."""
    q.put("A")
    consumer = q.join(1)
    for round_ in range(120):
        (job,) = consumer.pull()
        if round_ % 20 == 19:
            consumer.retry(job)
        else:
            consumer.release(job)
    (job,) = consumer.pull()
    assert (job.deliveries, job.attempts) == (120, 6)


@every_kind
def test_ARD_05_a_retry_with_a_delay_waits_for_it(q: QueueFixture, kind: str) -> None:
    """A-21: and comes again once."""
    q.put(*"01234")
    consumer = q.join()
    for job in consumer.pull():
        consumer.retry(job, delay=30)
    assert consumer.pull() == []
    pass_minutes(q, 0.45)
    assert consumer.pull() == []
    pass_minutes(q, 0.1)
    again = consumer.pull()
    assert ids(again) == list("01234")
    assert {job.attempts for job in again} == {1}


@every_kind
def test_ARD_07_delays_grow_up_to_a_maximum(q: QueueFixture, kind: str) -> None:
    """A-21: never early."""
    policy = RetryPolicy(delay=0.1, multiplier=2.0, max_delay=1.0, jitter=0)
    q.put("A")
    consumer = q.join(1)
    delays = []
    with frozen_time(q.queue) as time:
        for attempt in range(1, 7):
            (job,) = consumer.pull()
            failed_ms = q.queue.counts().now
            consumer.retry(job, delay=policy.delay_after(attempt))
            delays.append(q.queue.counts().next_due_ms - failed_ms)
            time.move((delays[-1] - 1) / 1000)
            assert consumer.pull() == []
            time.move(0.001)
    assert delays == [100, 200, 400, 800, 1000, 1000]


def test_ARD_09_one_attempt_and_it_is_a_dead_letter(q: QueueFixture) -> None:
    """a) A-22: with its id and its envelope."""
    q.put("A", max_deliveries=1)
    envelope = q.look().jobs["A"].partition(b";")[2]
    assert fail_all(q, 2) == [["A"], []]
    with Inspector(redis=q.queue.redis) as inspector:
        found = inspector.job("A", q.queue.name).job
        assert (found.state, found.id) == (JobState.DEAD, "A")
    assert q.look().jobs["A"].partition(b";")[2] == envelope
    assert q.listed() == []


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_ARD_10_the_last_attempt_is_followed_by_the_dead_letters(
    q: QueueFixture, attempts: int
) -> None:
    """a) A-22."""
    q.put("A", max_deliveries=attempts)
    assert fail_all(q, attempts + 1) == [["A"]] * attempts + [[]]
    assert q.queue.job("A").state() is JobState.DEAD
    with pytest.raises(JobFailed, match=f"round {attempts - 1}"):
        q.queue.job("A").result(0)


@every_kind
def test_ARD_13_order_holds_in_every_round_and_in_the_dead_letters(
    q: QueueFixture, kind: str
) -> None:
    """a) A-22, A-19: with the id and the envelope it was enqueued with."""
    q.put(*"01234", max_deliveries=16)
    envelopes = {id: value.partition(b";")[2] for id, value in q.look().jobs.items()}
    assert fail_all(q, 16) == [list("01234")] * 16
    after = q.look()
    assert sorted(after.scores("dead")) == list("01234")
    assert {id: value.partition(b";")[2] for id, value in after.jobs.items()} == envelopes


@one_kind
@pytest.mark.parametrize("expired", ["end", "dead"])
def test_ARD_15_a_job_whose_time_is_over_at_once_is_not_delivered(
    q: QueueFixture, expired: str
) -> None:
    """a) A-23: it ends, or becomes a dead letter with what it was enqueued with."""
    q.queue.configure(expired=expired)
    handle = q.put("A", ttl=0.001)
    envelope = q.look().jobs["A"].partition(b";")[2]
    move_time(q.queue, 2)
    assert q.join().pull() == []
    with pytest.raises(JobExpired):
        handle.result(0)
    look = q.look()
    assert list(look.scores("dead")) == (["A"] if expired == "dead" else [])
    assert {value.partition(b";")[2] for value in look.jobs.values()} <= {envelope}


@one_kind
def test_ARD_17_expired_jobs_say_when_and_go_where_the_queue_says_then(q: QueueFixture) -> None:
    """a) A-23: in order, not before their time, by what is configured when they expire."""
    q.put("first", ttl=1)
    q.queue.configure(expired="dead")
    q.put(*"12345", ttl=10)
    expires = q.queue.counts().now
    move_time(q.queue, 10_001)
    housekeeping(q.queue)
    look = q.look()
    assert list(look.scores("dead")) == [*"12345", "first"] or list(look.scores("dead")) == [
        "first",
        *"12345",
    ]
    assert all(score >= expires + 1000 for score in look.scores("dead").values())
    q.put("last", ttl=1)
    q.queue.configure(expired="end")
    move_time(q.queue, 1001)
    housekeeping(q.queue)
    assert q.queue.job("last").state() is JobState.EXPIRED


@every_kind
def test_ARD_18_jobs_are_expired_rejected_and_tried_again_by_hand(
    q: QueueFixture, kind: str
) -> None:
    """A-38."""
    q.queue.enqueue_many([Call("old", [], None, Options(id="a", **q._terms("a")))])
    q.put("b", "c")
    assert q.queue.expire_all(JobFilter(task="old")) == 1
    assert q.queue.reject("b", "b", "none", reason="not now") == 1
    assert q.queue.job("a").state() is JobState.EXPIRED
    assert q.queue.job("b").state() is JobState.DEAD
    with pytest.raises(JobFailed, match="not now"):
        q.queue.job("b").result(0)
    assert [(row["id"], row["outcome"]) for row in q.look().history] == [
        ("a", "expired"),
        ("b", "dead"),
    ]
    assert q.requeue("b") == 1
    assert ids(q.join().pull()) == ["c", "b"]
