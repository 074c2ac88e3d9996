"""What the end of a lease cost is taken back where its consumer lives (X-24)."""

from __future__ import annotations

from typing import Any

from rqueue.client._sync.consumer import Consumer
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.crashing import crash, end_lease, errors_of, holding, note
from tests.support.queue_fixture import QueueFixture


def lapse(q: QueueFixture, id: str = "A") -> Consumer:
    """The lease of a consumer ends that is known to have run this job; a renewal takes it back."""
    consumer = holding(q)
    note(q, consumer, commands.Ran(id, 1, 2))
    end_lease(q)
    return consumer


def live(q: QueueFixture, *consumers: Consumer) -> None:
    """A supervisor says that these live."""
    names = [consumer.name for consumer in consumers]
    execute(q.queue.redis, commands.renew(q.queue.keys, 30_000, names))


def test_the_end_of_a_lease_is_no_crash_where_its_consumer_lives(q: QueueFixture) -> None:
    """X-24: another pool found that the lease had ended, and then its own pool came back."""
    q.put("A", "B")
    for _ in range(4):
        consumer = lapse(q)
        assert q.queue.job("A").state() is JobState.READY
        live(q, consumer)
        assert q.look().named("lapsed:") == []
    got = q.join(10).pull()
    assert [(job.id, job.attempts, job.crashes) for job in got] == [("A", 0, 0), ("B", 0, 0)]
    assert errors_of(q, "A") == []


def test_who_comes_back_first_goes_on(q: QueueFixture) -> None:
    """Its own pool is the first to look after the outage: nothing runs twice."""
    q.put("A")
    consumer = holding(q)
    note(q, consumer, commands.Ran("A", 1, 2))
    move_time(q.queue, 60_000)
    live(q, consumer)
    assert q.join(1).pull() == []
    assert consumer.ack("A")
    assert [row["outcome"] for row in q.look().history] == ["ack"]


def test_who_comes_back_while_its_jobs_are_taken_is_not_charged(q: QueueFixture) -> None:
    """A step returns 200 jobs: it loses the others too, which go back uncharged."""
    names = [f"{i:03}" for i in range(250)]
    q.put(*names)
    consumer = q.join(len(names))
    while consumer.held < len(names):
        consumer.pull()
    note(q, consumer, *(commands.Ran(name, 1, 2) for name in (names[0], names[-1])))
    end_lease(q)
    assert q.queue.counts().held == 50
    live(q, consumer)
    got = q.join(len(names)).pull()
    assert [(job.id, job.attempts, job.crashes) for job in got] == [(name, 0, 0) for name in names]


def test_what_was_charged_by_others_stays(q: QueueFixture) -> None:
    q.put("A", max_crashes=9)
    crash(q, holding(q), "A")
    dead = lapse(q)
    move_time(q.queue, 1000)
    alive = lapse(q)
    live(q, alive)
    live(q, alive)
    assert [error["type"] for error in errors_of(q, "A")] == ["SIGSEGV", "LeaseEnded"]
    move_time(q.queue, 60_000)
    (job,) = q.join(1).pull()
    assert (job.attempts, job.crashes) == (2, 2)
    assert errors_of(q, "A")[1]["consumer"] == dead.name


def test_a_suspicion_goes_where_the_consumer_lives(q: QueueFixture) -> None:
    q.put("A")
    for _ in range(3):
        consumer = holding(q)
        end_lease(q)
        assert [error["kind"] for error in errors_of(q, "A")] == ["suspected"]
        live(q, consumer)
        assert errors_of(q, "A") == []
    (job,) = q.join(1).pull()
    assert job.crashes == 0


def test_a_charge_is_taken_back_while_another_one_holds_the_job(q: QueueFixture) -> None:
    """Its value keeps its length: the bytes that its holder counts depend on it."""
    q.put("A")
    consumer = lapse(q)
    other = q.join(10, bytes=10_000)
    assert [job.crashes for job in other.pull()] == [1]
    live(q, consumer)
    assert not (wrong := invariants.of_state(q.look(), ["A"])), wrong
    crash(q, other, "A")
    (job,) = q.join(1).pull()
    assert (job.attempts, job.crashes) == (1, 1)


def test_what_it_was_the_last_crash_for_stays_dead(q: QueueFixture) -> None:
    q.put("A", max_crashes=1)
    consumer = lapse(q)
    assert q.queue.job("A").state() is JobState.DEAD
    live(q, consumer)
    assert q.queue.job("A").state() is JobState.DEAD


def test_a_dead_letter_that_lives_again_owes_nothing_for_a_lease_of_before(q: QueueFixture) -> None:
    q.put("A", max_crashes=2)
    crash(q, holding(q), "A")
    consumer = lapse(q)
    q.requeue("A")
    crash(q, holding(q), "A")
    live(q, consumer)
    (job,) = q.join(1).pull()
    assert job.crashes == 1


def test_what_is_known_of_the_end_of_a_lease_is_forgotten_in_time(q: QueueFixture) -> None:
    q.put("A")
    consumer = lapse(q)
    left: Any = q.queue.redis.pttl(q.queue.keys.base + "lapsed:" + consumer.name)
    assert 0 < left <= 86_400_000
