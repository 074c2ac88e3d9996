"""Consumers that die, or are thought dead."""

from typing import Any

import pytest

from rqueue.errors import RegistrationLost, ScriptError
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Ran, Registered
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, every_place, ids


def end_lease(q: QueueFixture) -> None:
    """Time passes, and the next renewal looks."""
    move_time(q.queue, 60_000)
    q.renew()


def test_jobs_of_a_dead_consumer_come_again_in_their_places(q: QueueFixture) -> None:
    """Q-59, X-24: nothing is known of what it ran, so the oldest alone is suspected, uncharged."""
    q.put(*"12345")
    dead = q.join(5, slots=2)
    assert len(dead.pull()) == 5
    q.put(*"678")
    end_lease(q)
    got = q.join().pull()
    assert "".join(ids(got)) == "12345678"
    assert [job.redelivered for job in got] == [True] * 5 + [False] * 3
    assert [(job.attempts, job.crashes) for job in got] == [(0, 0)] * 8
    assert q.queue.redis.hkeys(q.queue.keys.errors) == [b"1"]


def test_a_lease_that_is_renewed_does_not_end(q: QueueFixture) -> None:
    """Q-59."""
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    for _ in range(5):
        move_time(q.queue, 20_000)
        assert q.renew(consumer) == []
    assert consumer.ack("A")


def test_a_lease_that_ended_goes_on_where_nobody_took_the_jobs(q: QueueFixture) -> None:
    """H-08, Q-59: Redis was away for longer than a lease, and its holder is the first one back."""
    q.put("A", "B")
    consumer = q.join(1)
    (job,) = consumer.pull()
    move_time(q.queue, 60_000)
    assert q.renew(consumer) == []
    assert consumer.ack(job)
    assert ids(consumer.pull()) == ["B"]


def test_a_lease_that_ended_does_not_go_on_where_somebody_took_the_jobs(q: QueueFixture) -> None:
    """H-08."""
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    end_lease(q)
    assert q.renew(consumer) == [consumer.name]
    with pytest.raises(RegistrationLost):
        consumer.pull()
    assert ids(q.join(1).pull()) == ["A"]


def test_a_job_handed_over_to_a_dead_consumer_is_not_lost(q: QueueFixture) -> None:
    """Q-19, H-07: it was never read."""
    dead = q.join(1)
    assert q.put("A").handed_to == dead.name
    end_lease(q)
    assert ids(q.join().pull()) == ["A"]


def test_a_supervisor_reclaims_at_once_and_charges_what_ran(q: QueueFixture) -> None:
    """X-13."""
    q.put("A", "B", "C")
    dead, waiting = q.join(3), q.join(0)
    dead.pull()
    waiting.interest(3)
    call = commands.reclaim(q.queue.keys, dead.name, b'{"kind":"crash"}', [commands.Ran("B")])
    assert execute(q.queue.redis, call).held == 0
    assert q.state(waiting) == "notified"
    assert [(job.id, job.attempts) for job in waiting.pull()] == [("A", 0), ("B", 1), ("C", 0)]


def test_a_job_that_kills_its_workers_dies(q: QueueFixture) -> None:
    """X-13, A-22: and takes nobody with it."""
    q.put("poison", "good", max_deliveries=2)
    for _ in range(2):
        victim = q.join(2)
        assert ids(victim.pull()) == ["poison", "good"]
        cause = b'{"kind":"crash","message":"killed by signal 9"}'
        ran = [commands.Ran("poison")]
        execute(q.queue.redis, commands.reclaim(q.queue.keys, victim.name, cause, ran))
    assert q.queue.job("poison").state() is JobState.DEAD
    (job,) = q.join(2).pull()
    assert (job.id, job.attempts) == ("good", 0)
    outcomes = [(row["id"], row["outcome"]) for row in q.look().history]
    assert outcomes == [("poison", "crash"), ("poison", "dead")]


def test_records_outlive_a_turn_of_generations_within_one_step(q: QueueFixture) -> None:
    """A-39: leases that end together make dead letters; jobs that ended just before are still
    known."""
    q.queue.configure(keep=10)
    q.put("early")
    consumer = q.join()
    consumer.settle(ack=consumer.pull())
    consumer.close()
    q.put("A", "B", max_deliveries=1)
    for _ in range(2):
        q.join(1).pull()
    q.queue.pause()
    q.put("late")
    move_time(q.queue, 60_000)
    assert q.queue.cancel("late")
    move_time(q.queue, 11_000)
    q.renew()
    assert not q.put("late").created


@every_place
def test_a_registration_that_is_said_again_is_the_same(q: QueueFixture) -> None:
    """H-12: a reply was lost. What was delivered in between stays where it is."""

    def said(token: str) -> Registered:
        call = commands.register(q.queue.keys, "c", lease_ms=30_000, token=token)
        return execute(q.queue.redis, call)

    first = said("mine")
    q.put("A")
    before = q.look()
    again = said("mine")
    assert (again.term, again.state) == (first.term, "not_interested")
    for other in ("", "theirs"):
        with pytest.raises(ScriptError, match="EXISTS"):
            said(other)
    assert not (wrong := invariants.unchanged(before, q.look())), wrong
    move_time(q.queue, 60_000)
    with pytest.raises(ScriptError, match="EXISTS"):  # a lease that has ended is not revived
        said("mine")
    q.renew()
    assert said("mine").term != first.term
    q.renew()
    execute(q.queue.redis, commands.unregister(q.queue.keys, "c", said("mine").term))


@pytest.mark.parametrize("what", ["priority", "lease_ms", "window"])
def test_what_is_no_number_registers_nobody(q: QueueFixture, what: str) -> None:
    """Nothing is smaller than it, and nothing larger: it passed for a number within bounds."""
    nan = float("nan")
    q.put("A")
    before = q.look().keys
    options: dict[str, Any] = {"lease_ms": 30_000, what: nan}
    if what == "window":
        options["window"] = commands.Window(nan)  # type: ignore[arg-type]
    with pytest.raises(ScriptError, match="BADARGS register"):
        execute(q.queue.redis, commands.register(q.queue.keys, "new", **options))
    with pytest.raises(ScriptError, match="BADARGS renew"):
        execute(q.queue.redis, commands.renew(q.queue.keys, nan, []))  # type: ignore[arg-type]
    assert q.look().keys == before


@pytest.mark.parametrize("begun", [float("nan"), float("inf")])
def test_a_time_that_is_no_number_takes_nothing_back(q: QueueFixture, begun: float) -> None:
    q.put("A")
    c = q.join(1)
    c.pull()
    before = q.look().keys
    ran = [Ran("A", 1, begun)]  # type: ignore[arg-type]
    with pytest.raises(ScriptError, match="BADARGS reclaim"):
        execute(q.queue.redis, commands.reclaim(q.queue.keys, c.name, b"{}", ran))
    with pytest.raises(ScriptError, match="BADARGS note_running"):
        execute(q.queue.redis, commands.note_running(q.queue.keys, c.name, ran))
    assert q.look().keys == before
