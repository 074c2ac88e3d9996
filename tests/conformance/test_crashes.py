"""Crashes: who is charged, how often, and when the job is back (X-23, X-24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from tests.support.crashing import crash, holding
from tests.support.queue_fixture import QueueFixture, every_place, ids


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


@every_place
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


@every_place
def test_attempts_of_a_task_hold_too(q: QueueFixture) -> None:
    q.put("A")
    consumer = limited(q, {"t": [1, 0]})
    take(q, consumer)
    crash(q, consumer, "A")
    assert q.queue.job("A").state() is JobState.DEAD


@every_place
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
