"""Queues that keep no dead letters: what fails for good, or cannot be read, ends."""

import pytest

from rqueue.errors import JobFailed
from rqueue.model.job import JobState
from rqueue.model.parents import Parents
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.failing import fail_all
from tests.support.queue_fixture import QueueFixture, ids, one_kind


@pytest.fixture
def discarding(q: QueueFixture) -> QueueFixture:
    q.queue.configure(dead_letters=False)
    return q


def gone(q: QueueFixture) -> bool:
    """Nothing is left of any job but records."""
    look = q.look()
    return not {"jobs", "dead", "causes", "errors", "held"} & {*look.keys}


def test_a_job_that_fails_at_its_limit_is_gone(discarding: QueueFixture) -> None:
    """C-07: its record, its row and who waits for it say that it failed."""
    handle = discarding.put("A", max_deliveries=2)
    assert fail_all(discarding, 3) == [["A"], ["A"], []]
    assert gone(discarding)
    assert handle.state() is JobState.DEAD
    with pytest.raises(JobFailed, match="round 1"):
        handle.result(0)
    assert discarding.queue.counts().dead == 0
    assert discarding.requeue("A") == 0
    assert not discarding.put("A").created


def test_a_job_that_a_crash_ends_is_gone(discarding: QueueFixture) -> None:
    """C-07: one that lives after a crash is back in its place (C-05)."""
    discarding.put("A", "B", max_crashes=1)
    discarding.put("C")
    consumer = discarding.join(3)
    consumer.pull()
    ran = [commands.Ran("A"), commands.Ran("C")]
    cause = b'{"kind":"crash"}'
    execute(
        discarding.queue.redis,
        commands.reclaim(discarding.queue.keys, consumer.name, cause, ran),
    )
    assert discarding.listed() == ["B", "C"]
    assert discarding.queue.job("A").state() is JobState.DEAD


def test_what_people_reject_is_gone(discarding: QueueFixture) -> None:
    discarding.put("A", "B")
    assert discarding.queue.reject("A") == 1
    assert discarding.listed() == ["B"]


@one_kind
def test_what_expires_is_gone_also_where_it_would_be_dead(discarding: QueueFixture) -> None:
    discarding.queue.configure(expired="dead")
    discarding.put("A", "B", ttl=1)
    discarding.put("C")
    move_time(discarding.queue, 2000)
    assert ids(discarding.join(3).pull()) == ["C"]
    assert discarding.queue.job("A").state() is JobState.DEAD


@one_kind
def test_what_has_no_header_is_kept_for_people(discarding: QueueFixture) -> None:
    """C-08: rqueue did not write it."""
    discarding.put("A")
    discarding.queue.redis.hset(discarding.queue.keys.jobs, "A", "foreign")
    consumer = discarding.join(1)
    (job,) = consumer.pull()
    consumer.release(job)
    assert discarding.queue.counts().dead == 1


@one_kind
def test_a_dead_letter_that_is_there_stays(q: QueueFixture) -> None:
    q.put("A", max_deliveries=1)
    fail_all(q, 1)
    q.queue.configure(dead_letters=False)
    assert q.requeue("A") == 1
    q.queue.configure(dead_letters=True)
    fail_all(q, 10)
    assert q.queue.counts().dead == 1


@one_kind
def test_the_turn_of_its_group_goes_on(discarding: QueueFixture) -> None:
    """Q-65."""
    puts = [Put(id, b'["t"]', group="g") for id in ("A", "B")]
    discarding.queue.enqueue_puts(puts)
    consumer = discarding.join(1)
    assert ids(consumer.pull()) == ["A"]
    consumer.reject("A", "no")
    assert ids(consumer.pull()) == ["B"]
    consumer.ack("B")
    assert gone(discarding)


def test_nothing_is_kept_of_who_waited_for_what_failed(q: QueueFixture) -> None:
    """C-07, Q-73: no dead letter lives again, so who waited for it is stopped, and not noted."""
    q.queue.configure(dead_letters=False)
    q.put("parent")
    waits = Parents(1, ids=("parent",)).text
    q.queue.enqueue_puts([Put("child", b'["t"]', waits=waits)])
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["parent"]
    consumer.reject("parent", "no")
    assert q.queue.job("child").state() is JobState.CANCELLED
    assert q.look().hash("edges") == {}


@pytest.mark.parametrize("on_failure", ["stop", "wait"])
def test_who_comes_to_wait_for_what_failed_is_stopped(q: QueueFixture, on_failure: str) -> None:
    """C-07, Q-73: as one that waited before."""
    q.queue.configure(dead_letters=False)
    q.put("parent")
    consumer = q.join(1)
    consumer.pull()
    consumer.reject("parent", "no")
    waits = Parents(1, ids=("parent",), on_failure=on_failure).text
    q.queue.enqueue_puts([Put("child", b'["t"]', waits=waits)])
    assert q.queue.job("child").state() is JobState.CANCELLED
    assert not {"edges", "deferred"} & q.look().keys.keys()
