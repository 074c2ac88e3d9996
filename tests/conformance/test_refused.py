"""Jobs that a consumer refuses: others take them, and this consumer does not get them again."""

from __future__ import annotations

import pytest

from rqueue.errors import ConfigError
from rqueue.model.job import JobState
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.settling import retried
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind

HOUR = 3_600_000


def sound(q: QueueFixture) -> None:
    assert invariants.of_state(q.look()) == []


def test_a_refused_job_keeps_its_place_for_others(q: QueueFixture) -> None:
    """Q-08: before what was enqueued after it, and uncounted."""
    q.put("a", "b", "c")
    first = q.join(1)
    assert ids(first.pull()) == ["a"]
    q.put("d")
    assert first.refuse("a")
    assert ids(first.pull()) == ["b"]
    taken = q.join(3).pull()
    assert ids(taken) == ["a", "c", "d"]
    assert (taken[0].header.deliveries, taken[0].header.attempts) == (1, 0)
    sound(q)


def test_who_waits_and_may_take_it_is_notified(q: QueueFixture) -> None:
    """Q-42: not one that refused it before, though it has waited longer."""
    one, two, three = q.join(1), q.join(1), q.join(1)
    for c in (one, two, three):
        assert c.pull() == []
    assert q.put("a").handed_to == one.name
    assert ids(one.pull()) == ["a"]
    assert one.refuse("a")
    assert ids(two.pull()) == ["a"]
    assert one.pull() == []
    two.interest(0)
    assert two.refuse("a")
    assert (q.state(one), q.state(three)) == ("interested", "notified")
    assert ids(three.pull()) == ["a"]
    sound(q)


def test_what_all_have_refused_waits_for_another_one(q: QueueFixture) -> None:
    """Q-08: nobody is woken for it, and the queue says that nobody takes it."""
    handle = q.put("a")
    c = q.join(1)
    c.pull()
    assert c.refuse("a")
    assert c.pull() == [] and q.state(c) == "interested"
    assert q.put("b").handed_to == ""
    assert ids(c.pull()) == ["b"]
    c.ack("b")
    counts = q.queue.counts()
    assert (counts.ready, dict(counts.unheard)) == (1, {"a refusal of all consumers": 1})
    assert handle.state() is JobState.READY
    late = q.join(1)
    assert q.state(late) == "notified"
    assert ids(late.pull()) == ["a"]
    sound(q)


@one_kind
def test_it_is_remembered_through_release_and_retry(q: QueueFixture) -> None:
    """A consumer that registers again is another one."""
    q.put("a")
    one, two = q.join(1), q.join(1)
    one.pull()
    one.refuse("a")
    assert ids(two.pull()) == ["a"]
    two.release("a")
    assert one.pull() == []
    assert ids(two.pull()) == ["a"]
    two.retry("a", delay=60)
    two.interest(0)
    move_time(q.queue, 60_001)
    assert one.pull() == []
    one.close()
    again = q.join(1)
    assert ids(again.pull()) == ["a"]
    sound(q)


@one_kind
def test_a_lower_consumer_takes_what_a_higher_one_refused(q: QueueFixture) -> None:
    """Q-45: a higher one is not ahead where it takes nothing."""
    high, low = q.join(1, priority=5), q.join(1)
    q.put("a")
    assert ids(high.pull()) == ["a"]
    assert high.refuse("a")
    assert high.pull() == []
    assert ids(low.pull()) == ["a"]
    low.ack("a")
    assert low.pull() == []
    q.put("b")
    assert low.pull() == []
    assert ids(high.pull()) == ["b"]
    sound(q)


@one_kind
def test_several_are_refused_in_one_step_and_the_next_ones_come(q: QueueFixture) -> None:
    q.put(*"abcd")
    c, other = q.join(2), q.join(4)
    assert ids(c.pull()) == ["a", "b"]
    refused = [retried(id, 0, None, ELSEWHERE, False) for id in "ab"]
    assert ids(c.settle(retry=refused, pull=True)) == ["c", "d"]
    assert ids(other.pull()) == ["a", "b"]
    assert [row["outcome"] for row in q.look().history] == ["refuse", "refuse"]
    sound(q)


@one_kind
def test_a_refused_job_is_listed_moved_and_cancelled(q: QueueFixture) -> None:
    q.put("a", "b", "c")
    c = q.join(3)
    c.pull()
    refused = [retried(id, 0, None, ELSEWHERE, False) for id in "abc"]
    c.settle(retry=refused)
    assert q.listed() == ["a", "b", "c"]
    assert q.queue.set_priority("b", 9) == 1
    assert q.queue.move_to_front("c") == 1
    assert q.queue.cancel("a")
    sound(q)
    assert ids(q.join(3).pull()) == ["b", "c"]


@one_kind
def test_more_consumers_than_can_be_remembered_make_a_dead_letter(q: QueueFixture) -> None:
    """16 that are registered; those that have left are forgotten."""
    handle = q.put("a")
    for _ in range(20):
        c = q.join(1)
        assert ids(c.pull()) == ["a"]
        assert c.refuse("a")
        c.close()
    everybody = [q.join(1) for _ in range(17)]
    for c in everybody:
        assert ids(c.pull()) == ["a"]
        assert c.refuse("a")
        sound(q)
    assert handle.state() is JobState.DEAD
    assert b'"refused"' in q.look().hash("causes")[b"a"]


@one_kind
@pytest.mark.parametrize("kind", ["groups", "selectors", "last_value"])
def test_what_it_does_not_go_with(q: QueueFixture, kind: str) -> None:
    """The refusal is refused, and the job stays held."""
    q.queue.configure(kind=kind)
    q.put("a")
    c = q.join(1)
    c.pull()
    with pytest.raises(ConfigError, match="refusals"):
        c.refuse("a")
    assert q.look().held == {c.name: ["a"]}


@pytest.mark.parametrize("q", ["worker"], indirect=True)
def test_a_worker_snoozes_it_then(q: QueueFixture) -> None:
    """And settles what else ended."""
    q.queue.configure(kind="groups")
    q.put("a", "b", group="g")
    q.put("c")
    c = q.join(2)
    assert ids(c.pull()) == ["a", "c"]
    refused = [retried("a", 0, None, ELSEWHERE, False)]
    c.settle(ack=["c"], retry=refused)
    look = q.look()
    assert [id for id, *_ in look.scheduled] == ["a"]
    assert [(row["id"], row["outcome"]) for row in look.history] == [("c", "ack"), ("a", "snooze")]
    sound(q)
