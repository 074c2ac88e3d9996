"""Crashes: who is charged, how often, and when the job is back (X-23, X-24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import JobFailed, RQueueError
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids

CAUSE = b'{"kind":"crash","type":"SIGSEGV","message":"killed","at":7,"worker":"w"}'


def crash(q: QueueFixture, consumer: Consumer, *ran: str | commands.Ran) -> None:
    """Its process died while it ran these."""
    jobs = [commands.Ran(job) if isinstance(job, str) else job for job in ran]
    call = commands.reclaim(q.queue.keys, consumer.name, CAUSE, jobs)
    assert execute(q.queue.redis, call).held == 0


def note(q: QueueFixture, consumer: Consumer, *ran: commands.Ran) -> int:
    return execute(q.queue.redis, commands.note_running(q.queue.keys, consumer.name, ran))


def end_lease(q: QueueFixture) -> None:
    move_time(q.queue, 60_000)
    q.renew()


def holding(q: QueueFixture, jobs: int = 10, **options: Any) -> Consumer:
    consumer = q.join(jobs, **options)
    consumer.pull()
    return consumer


def limited(
    q: QueueFixture, limits: Mapping[str, Sequence[int]] | str, name: str = "limited"
) -> Consumer:
    """A consumer whose tasks have limits."""
    consumer = q.queue.consumer(name=name, jobs=10, renew=False)
    said = limits if isinstance(limits, str) else orjson.dumps(limits).decode()
    call = commands.register(
        q.queue.keys, name, window=commands.Window(10), lease_ms=30_000, worker=name
    )
    call = call._replace(args=[*call.args[:-2], said, ""])
    execute(q.queue.redis, call)
    return consumer


def take(q: QueueFixture, consumer: Consumer) -> None:
    """Let a consumer that was registered by hand pull."""
    term = q.look().consumers[consumer.name]["term"]
    call = commands.pull(q.queue.keys, consumer.name, term, commands.Window(10))
    execute(q.queue.redis, call)


def test_the_first_crash_is_forgiven_at_once_and_the_second_one_costs_time(q: QueueFixture) -> None:
    """X-23: it keeps its place through all of this."""
    q.queue.configure(max_crashes=5)
    q.put("A", "poison", "B")
    crash(q, holding(q), "poison")
    victim = q.join(10)
    assert ids(victim.pull()) == ["A", "poison", "B"]
    for delay in (1_000, 5_000, 25_000):
        crash(q, victim, "poison")
        assert q.queue.job("poison").state() is JobState.SCHEDULED
        victim = q.join(10)
        move_time(q.queue, delay - 200)
        got = victim.pull()
        assert ids(got) == ["A", "B"]
        victim.settle(release=got)
        move_time(q.queue, 200)
        victim.close()
        victim = q.join(10)
        assert ids(victim.pull()) == ["A", "poison", "B"], "in its place"
    crash(q, victim, "poison")
    assert q.queue.job("poison").state() is JobState.DEAD
    with pytest.raises(JobFailed) as failed:
        q.queue.job("poison").result(0)
    assert (failed.value.type, failed.value.attempts) == ("SIGSEGV", 5)


def test_three_crashes_are_enough_and_each_cause_is_kept(q: QueueFixture) -> None:
    q.put("poison")
    for _ in range(3):
        crash(q, holding(q), commands.Ran("poison", 11, 12))
        move_time(q.queue, 2000)
    shown = execute(q.queue.redis, commands.show(q.queue.keys, "poison"))
    errors = [orjson.loads(line) for line in shown.errors.splitlines()]
    assert [(e["type"], e["attempt"], e["crash"]) for e in errors] == [
        ("SIGSEGV", 1, 1),
        ("SIGSEGV", 2, 2),
        ("SIGSEGV", 3, 3),
    ]
    rows = q.look().history
    assert [row["outcome"] for row in rows] == ["crash", "crash", "dead"]
    assert [(row["attempts"], row["deliveries"]) for row in rows] == [(0, 0), (1, 1), (2, 2)]
    assert [(row["acquired"], row["started"]) for row in rows] == [(11, 12)] * 3


def test_what_failed_otherwise_does_not_count_as_a_crash(q: QueueFixture) -> None:
    q.put("A", max_crashes=2)
    for _ in range(4):
        consumer = q.join(1)
        (job,) = consumer.pull()
        consumer.retry(job)
        consumer.close()
    crash(q, holding(q), "A")
    (job,) = q.join(1).pull()
    assert (job.attempts, job.crashes, job.max_crashes) == (5, 1, 2)


def test_a_crash_counts_as_an_attempt(q: QueueFixture) -> None:
    """X-13."""
    q.put("A", max_deliveries=2, max_crashes=9)
    crash(q, holding(q), "A")
    crash(q, holding(q), "A")
    assert q.queue.job("A").state() is JobState.DEAD


def test_jobs_that_crashed_together_come_back_one_after_the_other(q: QueueFixture) -> None:
    """The next crash shows which of them it was."""
    q.put("A", "B", "C")
    for _ in range(2):
        crash(q, holding(q), "A", "B", "C")
    for id in "ABC":
        assert q.queue.job(id).state() is JobState.SCHEDULED
    consumer = q.join(10)
    for id in "ABC":
        assert ids(consumer.pull()) == []
        move_time(q.queue, 1000)
        (job,) = consumer.pull()
        assert job.id == id
        consumer.ack(job)


def test_a_dead_letter_that_lives_again_has_not_crashed(q: QueueFixture) -> None:
    q.put("A", max_crashes=1)
    crash(q, holding(q), "A")
    q.requeue("A")
    (job,) = q.join(1).pull()
    assert (job.attempts, job.crashes, job.max_crashes) == (0, 0, 1)


def test_a_paused_queue_keeps_what_crashed_twice(q: QueueFixture) -> None:
    q.put("A", "B")
    crash(q, holding(q), "A")
    victim = holding(q)
    q.queue.pause()
    crash(q, victim, "A")
    move_time(q.queue, 5000)
    consumer = q.join(10)
    assert consumer.pull() == []
    q.queue.resume()
    assert ids(consumer.pull()) == ["A", "B"]


def test_cancelled_while_it_waits(q: QueueFixture) -> None:
    q.put("A", "B")
    for _ in range(2):
        crash(q, holding(q), "A")
    assert q.queue.cancel("A")
    move_time(q.queue, 5000)
    assert ids(q.join(10).pull()) == ["B"]


def test_the_end_of_a_lease_charges_what_was_noted_and_nobody_else(q: QueueFixture) -> None:
    """X-24: as it was noted last, if the same consumer holds it by the same delivery."""
    q.put(*"ABCDEF")
    dead = holding(q, 5, slots=8)
    assert note(q, dead, commands.Ran("A", 1, 2), commands.Ran("C", 3, 4)) == 2
    assert note(q, dead, commands.Ran("A"), commands.Ran("B", 5, 6), commands.Ran("D", 7, 8)) == 3
    # A ended; B went back, and came to the same consumer again, where it has not begun
    dead.settle(ack=["A"])
    dead.settle(release=["B"])
    dead.pull()
    end_lease(q)
    got = q.join(10).pull()
    assert [(job.id, job.attempts, job.crashes) for job in got] == [
        ("B", 0, 0),
        ("C", 0, 0),
        ("D", 1, 1),
        ("E", 0, 0),
        ("F", 0, 0),
    ]
    (row,) = [row for row in q.look().history if row["outcome"] == "crash"]
    assert (row["id"], row["acquired"], row["started"]) == ("D", 7, 8)
    assert q.look().named("running:") == []


def lose(q: QueueFixture, jobs: int = 3) -> None:
    """A whole pool dies, and nothing was noted of what it ran."""
    holding(q, jobs, slots=100)
    end_lease(q)


def errors_of(q: QueueFixture, id: str) -> list[dict[str, Any]]:
    shown = execute(q.queue.redis, commands.show(q.queue.keys, id))
    return [orjson.loads(line) for line in shown.errors.splitlines()]


def test_where_nothing_is_known_the_oldest_alone_is_suspected_and_charges_come_later(
    q: QueueFixture,
) -> None:
    """X-24: the first suspicion costs nothing; it is at its place, at once."""
    q.put(*"ABC")
    lose(q)
    consumer = q.join(10)
    got = consumer.pull()
    assert [(job.id, job.attempts, job.crashes, job.deliveries) for job in got] == [
        (id, 0, 0, 1) for id in "ABC"
    ]
    assert q.look().history == []
    (suspicion,) = errors_of(q, "A")
    assert (suspicion["kind"], suspicion["type"], suspicion["position"]) == (
        "suspected",
        "LeaseEnded",
        1,
    )
    assert "had begun is not known: it is not charged" in suspicion["message"]
    assert errors_of(q, "B") == errors_of(q, "C") == []
    consumer.settle(release=got)
    consumer.close()
    lose(q)
    got = q.join(10).pull()
    assert [(job.id, job.attempts, job.crashes) for job in got] == [
        ("A", 1, 1),
        ("B", 0, 0),
        ("C", 0, 0),
    ]
    _, charge = errors_of(q, "A")
    assert (charge["kind"], charge["deaths"], charge["crash"]) == ("crash", 2, 1)
    assert "it was held by 2 workers that died" in charge["message"]


def test_a_job_that_takes_its_pool_at_once_is_dead_after_a_suspicion_and_its_crashes(
    q: QueueFixture,
) -> None:
    q.put("poison", "innocent")
    for _ in range(4):
        assert q.queue.job("poison").state() is not JobState.DEAD
        lose(q)
        move_time(q.queue, 5000)
    assert q.queue.job("poison").state() is JobState.DEAD
    said = errors_of(q, "poison")
    assert [(e["kind"], e.get("crash"), e.get("deaths")) for e in said] == [
        ("suspected", None, None),
        ("crash", 1, 2),
        ("crash", 2, 3),
        ("crash", 3, 4),
    ]
    assert q.queue.job("innocent").state() is JobState.READY


def test_what_is_known_to_have_run_is_charged_also_where_it_was_suspected(q: QueueFixture) -> None:
    q.put("A")
    lose(q)
    note(q, holding(q), commands.Ran("A", 1, 2))
    end_lease(q)
    (job,) = q.join(1).pull()
    assert job.crashes == 1
    assert [error.get("deaths") for error in errors_of(q, "A")] == [None, None]


@pytest.mark.parametrize("settled", ["ack", "done", "dead", "purge", "cancel", "cancel held"])
def test_a_suspicion_goes_with_its_job(q: QueueFixture, settled: str) -> None:
    q.put("A")
    lose(q)
    assert q.look().hash("errors")
    if settled == "cancel":
        assert q.queue.cancel("A")
    elif settled == "purge":
        q.purge()
    else:
        consumer = holding(q)
        if settled == "ack":
            consumer.settle(ack=["A"])
        elif settled == "done":
            consumer.settle(done=[("A", None)])
        elif settled == "dead":
            consumer.reject("A", "no")
            q.purge_dead("A")
        else:
            assert q.queue.cancel("A", held=True)
    assert q.look().hash("errors") == {}


def test_a_dead_letter_that_lives_again_is_not_suspected(q: QueueFixture) -> None:
    """Its crashes count from nothing, and so do suspicions; what was noted stays."""
    q.put("A", max_crashes=1)
    lose(q)
    lose(q)
    q.requeue("A")
    lose(q)
    (job,) = q.join(1).pull()
    assert job.crashes == 0
    assert [error["kind"] for error in errors_of(q, "A")] == ["suspected", "crash", "suspected"]


def test_what_nobody_read_is_not_charged(q: QueueFixture) -> None:
    """A job that was delivered directly, and whose message is still there, never began."""
    consumer = q.join(5)
    assert q.put("A").handed_to == consumer.name
    end_lease(q)
    (job,) = q.join(1).pull()
    assert (job.id, job.attempts, job.deliveries) == ("A", 0, 1)
    assert q.look().history == []


def test_a_note_of_a_consumer_that_is_gone_is_refused(q: QueueFixture) -> None:
    consumer = q.join(1)
    end_lease(q)
    before = q.look()
    with pytest.raises(RQueueError):
        note(q, consumer, commands.Ran("A"))
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


def test_what_tasks_allow_holds_for_jobs_that_came_by_name(q: QueueFixture) -> None:
    """The worker says it when it registers: its task, else all its tasks; the job itself wins."""
    q.queue.configure(max_crashes=9)
    q.put("by task", "by itself")
    q.queue.send("other", options=Options(id="by pool"))
    q.put("own", max_crashes=4)
    consumer = limited(q, {"t": [0, 1], "*": [0, 2]})
    take(q, consumer)
    crash(q, consumer, "by task", "by pool", "own")
    states = {id: q.queue.job(id).state() for id in ("by task", "by pool", "own")}
    assert states == {
        "by task": JobState.DEAD,
        "by pool": JobState.READY,
        "own": JobState.READY,
    }
    again = limited(q, {"t": [0, 1], "*": [0, 2]}, "again")
    take(q, again)
    crash(q, again, "by pool", "own")
    assert q.queue.job("by pool").state() is JobState.DEAD
    assert q.queue.job("own").state() is JobState.SCHEDULED


def test_attempts_of_a_task_hold_too(q: QueueFixture) -> None:
    q.put("A")
    consumer = limited(q, {"t": [1, 0]})
    take(q, consumer)
    crash(q, consumer, "A")
    assert q.queue.job("A").state() is JobState.DEAD


@pytest.mark.parametrize("limits", ["[", "7", '{"t": 1}', '{"t": [1]}', '{"t": ["x", 1]}'])
def test_limits_that_cannot_be_read_are_refused(q: QueueFixture, limits: str) -> None:
    before = q.look()
    with pytest.raises(RQueueError, match="limits"):
        limited(q, limits)
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


@pytest.mark.parametrize("cause", [b"", b"[", b"7"])
def test_a_cause_that_is_no_object_is_refused(q: QueueFixture, cause: bytes) -> None:
    q.put("A")
    consumer = holding(q)
    before = q.look()
    call = commands.reclaim(q.queue.keys, consumer.name, cause, [commands.Ran("A")])
    with pytest.raises(RQueueError, match="JSON object"):
        execute(q.queue.redis, call)
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


def lapse(q: QueueFixture, id: str = "A") -> Consumer:
    """The lease of a consumer ends that is known to have run this job; somebody takes it back."""
    consumer = holding(q)
    note(q, consumer, commands.Ran(id, 1, 2))
    end_lease(q)
    return consumer


def live(q: QueueFixture, *consumers: Consumer) -> None:
    """A supervisor says that these live."""
    names = [consumer.name for consumer in consumers]
    execute(q.queue.redis, commands.renew(q.queue.keys, 30_000, names))


def test_the_end_of_a_lease_is_no_crash_where_its_consumer_lives(q: QueueFixture) -> None:
    """X-24: somebody else found that the lease had ended, and then its own pool came back."""
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
