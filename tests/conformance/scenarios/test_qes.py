"""Qpid's states of a job, the same in queues of every kind."""

from typing import Any

import pytest

from rqueue.model.job import JobState
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids, one_kind

TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "level": {"priority": 9},
    "ttl": {"ttl": 60},
    "group": {"group": "a"},
    "class": {"labels": {"x": 1}},
}


@pytest.fixture(params=TERMS)
def terms(q: QueueFixture, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of the jobs of a queue of another kind."""
    if "labels" in TERMS[request.param]:
        q.queue.configure(kind="selectors")
    return TERMS[request.param]


def test_QES_01_a_job_is_acquired_once(q: QueueFixture, terms: dict[str, Any]) -> None:
    """Q-06."""
    handle = q.put("A", **terms)
    first, second = q.join(1), q.join(1)
    assert ids(first.pull()) == ["A"]
    assert second.pull() == []
    assert q.look().held == {first.name: ["A"]}
    assert handle.state() is JobState.HELD


def test_QES_02_a_released_job_is_there_at_once(q: QueueFixture, terms: dict[str, Any]) -> None:
    """Q-06."""
    handle = q.put("A", **terms)
    first, second = q.join(1), q.join(1)
    first.pull()
    first.interest(0)
    assert first.release("A")
    assert handle.state() is JobState.READY
    assert ids(second.pull()) == ["A"]


def test_QES_03_what_has_ended_is_not_released(q: QueueFixture, terms: dict[str, Any]) -> None:
    """Q-06, Q-07: the consumer's settle says so, and nothing comes again."""
    handle = q.put("A", **terms)
    consumer = q.join(1)
    (job,) = consumer.pull()
    assert q.queue.cancel("A")
    assert consumer.release(job) is False
    assert handle.state() is JobState.CANCELLED
    assert consumer.pull() == []
    assert q.look().jobs == {}


def test_QES_04_each_change_of_state_is_seen(q: QueueFixture, terms: dict[str, Any]) -> None:
    """Q-06, Q-07: by who asks, by the consumer that loses the job, and in the history."""
    handle = q.put("A", **terms)
    consumer = q.join(1)
    seen = [handle.state()]
    consumer.pull()
    seen.append(handle.state())
    assert q.queue.cancel("A")
    seen.append(handle.state())
    assert seen == [JobState.READY, JobState.HELD, JobState.CANCELLED]
    (wake,) = consumer.wait(PATIENCE)
    assert (wake.kind, wake.id) == ("revoked", "A")
    (row,) = q.look().history
    assert (row["id"], row["outcome"], row["worker"]) == (
        "A",
        "cancelled",
        q.look().consumers[consumer.name]["worker"],
    )


def test_QES_06_only_the_consumer_that_holds_a_job_settles_it(
    q: QueueFixture, terms: dict[str, Any]
) -> None:
    """Q-07: the holder may ask for it again, and another one's word changes nothing."""
    q.put("A", **terms)
    holder, other = q.join(1), q.own(1)
    holder.pull()
    assert ids(holder.pull(recall=True)) == ["A"]
    assert other.ack("A") is False
    assert other.release("A") is False
    assert q.look().held == {holder.name: ["A"]}
    assert holder.release("A")
    assert q.look().held == {}
    assert ids(other.pull() or holder.pull()) == ["A"]


def test_QES_07_refusals_are_remembered_per_consumer(q: QueueFixture) -> None:
    """Q-08."""
    handle = q.put("A")
    c1, c2 = q.join(1), q.join(1)
    assert ids(c1.pull()) == ["A"]
    assert c1.refuse("A")
    assert handle.state() is JobState.READY
    assert c1.pull() == []
    assert ids(c2.pull()) == ["A"]
    assert c1.pull() == []
    assert c2.refuse("A")
    assert (c1.pull(), c2.pull()) == ([], [])
    assert ids(q.join(1).pull()) == ["A"]


@one_kind
def test_QES_08_what_has_ended_is_passed_over(q: QueueFixture, terms: dict[str, Any]) -> None:
    """Q-09."""
    q.put(*"12345", **terms)
    assert q.queue.cancel("2") and q.queue.cancel("3")
    assert q.listed() == list("145")
