"""Consumers that die, or are thought dead."""

import pytest

from rqueue.errors import RegistrationLost
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.bench import Bench, ids


def end_lease(bench: Bench) -> None:
    """Time passes, and somebody looks."""
    move_time(bench.queue, 60_000)
    bench.renew()


def test_jobs_of_a_dead_consumer_come_again_in_their_places(bench: Bench) -> None:
    """Q-59, X-24: nothing is known of what it ran, so the oldest alone is suspected, uncharged."""
    bench.put(*"12345")
    dead = bench.join(5, slots=2)
    assert len(dead.pull()) == 5
    bench.put(*"678")
    end_lease(bench)
    got = bench.join().pull()
    assert "".join(ids(got)) == "12345678"
    assert [job.redelivered for job in got] == [True] * 5 + [False] * 3
    assert [(job.attempts, job.crashes) for job in got] == [(0, 0)] * 8
    assert bench.queue.redis.hkeys(bench.queue.keys.errors) == [b"1"]


def test_a_consumer_whose_lease_ended_settles_nothing(bench: Bench) -> None:
    """H-08: the job is somebody else's."""
    bench.put("A")
    zombie = bench.join(1)
    (job,) = zombie.pull()
    end_lease(bench)
    other = bench.join(1)
    assert ids(other.pull()) == ["A"]
    before = bench.look()
    with pytest.raises(RegistrationLost):
        zombie.ack(job, "late")
    assert not (wrong := invariants.unchanged(before, bench.look())), wrong
    assert other.ack("A", "in time")
    assert bench.queue.job("A").result(0) == "in time"
    assert bench.queue.counts().meta["acked"] == "1"


@pytest.mark.parametrize("verb", ["ack", "release", "reject", "retry", "pull", "interest"])
def test_whatever_it_says_changes_nothing(bench: Bench, verb: str) -> None:
    """H-08."""
    bench.put("A", "B")
    zombie = bench.join(1)
    zombie.pull()
    end_lease(bench)
    before = bench.look()
    arguments = {"reject": ("A", "why"), "pull": (), "interest": (3,)}.get(verb, ("A",))
    with pytest.raises(RegistrationLost):
        getattr(zombie, verb)(*arguments)
    assert not (wrong := invariants.unchanged(before, bench.look())), wrong


def test_a_lease_that_is_renewed_does_not_end(bench: Bench) -> None:
    """Q-59."""
    bench.put("A")
    consumer = bench.join(1)
    consumer.pull()
    for _ in range(5):
        move_time(bench.queue, 20_000)
        assert bench.renew(consumer) == []
    assert consumer.ack("A")


def test_a_lease_that_ended_is_not_revived(bench: Bench) -> None:
    """H-08."""
    consumer = bench.join(1)
    move_time(bench.queue, 60_000)
    assert bench.renew(consumer) == [consumer.name]
    with pytest.raises(RegistrationLost):
        consumer.pull()


def test_a_job_handed_over_to_a_dead_consumer_is_not_lost(bench: Bench) -> None:
    """Q-19, H-07: it was never read."""
    dead = bench.join(1)
    assert bench.put("A").handed_to == dead.name
    end_lease(bench)
    assert ids(bench.join().pull()) == ["A"]


def test_a_supervisor_gives_back_at_once_and_charges_what_ran(bench: Bench) -> None:
    """X-13."""
    bench.put("A", "B", "C")
    dead, waiting = bench.join(3), bench.join(0)
    dead.pull()
    waiting.interest(3)
    call = commands.reclaim(bench.queue.keys, dead.name, b'{"kind":"crash"}', [commands.Ran("B")])
    assert execute(bench.queue.redis, call).held == 0
    assert bench.state(waiting) == "notified"
    assert [(job.id, job.attempts) for job in waiting.pull()] == [("A", 0), ("B", 1), ("C", 0)]


def test_a_job_that_kills_its_workers_dies(bench: Bench) -> None:
    """X-13, A-22: and takes nobody with it."""
    bench.put("poison", "good", max_deliveries=2)
    for _ in range(2):
        victim = bench.join(2)
        assert ids(victim.pull()) == ["poison", "good"]
        cause = b'{"kind":"crash","message":"killed by signal 9"}'
        ran = [commands.Ran("poison")]
        execute(bench.queue.redis, commands.reclaim(bench.queue.keys, victim.name, cause, ran))
    assert bench.queue.job("poison").state() is JobState.DEAD
    (job,) = bench.join(2).pull()
    assert (job.id, job.attempts) == ("good", 0)
    outcomes = [(row["id"], row["outcome"]) for row in bench.look().history]
    assert outcomes == [("poison", "crash"), ("poison", "dead")]


def test_records_outlive_a_turn_of_generations_within_one_step(bench: Bench) -> None:
    """A-39: leases that end together bury jobs; what ended just before is still known."""
    bench.queue.configure(keep=10)
    bench.put("early")
    consumer = bench.join()
    consumer.settle(ack=consumer.pull())
    consumer.close()
    bench.put("A", "B", max_deliveries=1)
    for _ in range(2):
        bench.join(1).pull()
    bench.queue.pause()
    bench.put("late")
    move_time(bench.queue, 60_000)
    assert bench.queue.cancel("late")
    move_time(bench.queue, 11_000)
    bench.renew()
    assert not bench.put("late").created
