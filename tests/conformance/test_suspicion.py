"""Who is charged when a lease ends: what was noted, or the oldest at its second time (X-24)."""

from __future__ import annotations

import pytest

from rqueue.errors import RQueueError
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.crashing import end_lease, errors_of, holding, lose, note
from tests.support.queue_fixture import QueueFixture


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
