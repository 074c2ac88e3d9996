"""Sticky groups: a group is its consumer's until that leaves, or the group is reset."""

from __future__ import annotations

import pytest

from rqueue.errors import ConfigError
from rqueue.protocol.policies.sticky import bucket_of
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind


def sound(q: QueueFixture) -> None:
    assert invariants.of_state(q.look()) == []


@pytest.fixture
def sticky(q: QueueFixture) -> QueueFixture:
    q.queue.configure(sticky=1024)
    return q


def put(q: QueueFixture, *names: str) -> None:
    """Jobs named "<group><number>"."""
    for name in names:
        q.put(name, group=name[0])


def test_an_owner_gets_its_group_also_after_that_was_empty(sticky: QueueFixture) -> None:
    """Q-64: others pass over it."""
    q = sticky
    put(q, "a1", "b1", "a2")
    one, two = q.join(1), q.join(1)
    assert ids(one.pull()) == ["a1"]
    assert ids(two.pull()) == ["b1"]
    assert two.settle(ack=["b1"], pull=True) == []
    assert ids(one.settle(ack=["a1"], pull=True)) == ["a2"]
    put(q, "a3")
    assert q.queue.groups.owner("a") == one.name
    assert (q.state(one), q.state(two)) == ("not_interested", "interested")
    assert ids(one.settle(ack=["a2"], pull=True)) == ["a3"]
    assert one.settle(ack=["a3"], pull=True) == []
    put(q, "a4")
    assert two.pull() == []
    assert ids(one.pull()) == ["a4"]
    sound(q)


def test_a_consumer_that_leaves_leaves_its_groups_in_order(sticky: QueueFixture) -> None:
    """Q-58: what it held comes first."""
    q = sticky
    put(q, "a1", "a2", "a3")
    one, two = q.join(1), q.join(1)
    assert ids(one.pull()) == ["a1"]
    assert two.pull() == []
    one.close()
    assert q.state(two) == "notified"
    assert ids(two.pull()) == ["a1"]
    assert q.queue.groups.owner("a") == two.name
    assert ids(two.settle(ack=["a1"], pull=True)) == ["a2"]
    sound(q)


@one_kind
def test_a_lease_that_ends_frees_its_groups(sticky: QueueFixture) -> None:
    """Q-58: and what the consumer held goes first."""
    q = sticky
    put(q, "a1", "a2")
    one = q.join(1)
    assert ids(one.pull()) == ["a1"]
    two = q.join(1, lease=90)
    move_time(q.queue, 60_000)
    q.renew(two)
    assert q.queue.groups.owner("a") == ""
    assert ids(two.pull()) == ["a1"]
    sound(q)


def test_nothing_of_a_group_overtakes_a_job_that_failed(sticky: QueueFixture) -> None:
    """X-05: also while that waits to be tried again, and by its owner."""
    q = sticky
    put(q, "a1", "a2")
    one, two = q.join(1), q.join(1)
    assert ids(one.pull()) == ["a1"]
    one.release("a1")
    assert two.pull() == []
    assert ids(one.pull()) == ["a1"]
    one.retry("a1", delay=5)
    assert (one.pull(), two.pull()) == ([], [])
    move_time(q.queue, 5000)
    two.pull()
    assert ids(one.pull()) == ["a1"]
    assert ids(one.settle(ack=["a1"], pull=True)) == ["a2"]
    sound(q)


@one_kind
def test_a_job_goes_to_its_owner_directly(sticky: QueueFixture) -> None:
    """Q-19: also where another one has waited longer."""
    q = sticky
    one, two = q.join(2), q.join(2)
    assert q.put("a1", group="a").handed_to == one.name
    assert ids(one.pull()) == ["a1"]
    one.settle(ack=["a1"], pull=True)
    assert q.put("a2", group="a").handed_to == one.name
    assert q.put("b1", group="b").handed_to == two.name
    assert q.put("a3", group="a").handed_to == ""
    sound(q)


@one_kind
def test_the_first_of_a_group_says_so_also_when_it_is_asked_for_again(sticky: QueueFixture) -> None:
    """A-26: not when it comes back."""
    q = sticky
    put(q, "a1", "a2")
    one = q.join(1)
    (job,) = one.pull()
    assert job.first_of_group and job.group == "a"
    assert q.look().jobs["a1"] == job.value
    one.release("a1")
    (job,) = one.pull()
    assert not job.first_of_group
    one.close()
    (job,) = q.join(1).pull()
    assert job.first_of_group
    sound(q)


@one_kind
def test_a_group_that_is_reset_goes_to_the_next_one(sticky: QueueFixture) -> None:
    """A-26: what its owner holds goes before it."""
    q = sticky
    put(q, "a1", "a2")
    one, two = q.join(1), q.join(1)
    one.pull()
    assert two.pull() == []
    assert q.queue.groups.reset("a") == one.name
    assert q.queue.groups.reset("a") == ""
    assert two.pull() == []
    one.ack("a1")
    assert q.state(two) == "notified"
    assert ids(two.pull()) == ["a2"]
    assert q.queue.groups.owner("a") == two.name
    two.interest(0)
    two.release("a2")
    assert (q.state(one), q.queue.groups.reset("a")) == ("not_interested", two.name)
    assert ids(one.pull()) == ["a2"]
    sound(q)


@one_kind
def test_who_waits_is_notified_of_what_is_reset(sticky: QueueFixture) -> None:
    """Q-37."""
    q = sticky
    put(q, "a1")
    one, two = q.join(1), q.join(1)
    one.pull()
    assert two.pull() == []
    one.interest(0)
    one.release("a1")
    assert q.state(two) == "interested"
    q.queue.groups.reset("a")
    assert q.state(two) == "notified"
    sound(q)


@one_kind
def test_new_groups_are_shared_out(sticky: QueueFixture) -> None:
    """One that grants much does not own all there are."""
    q = sticky
    put(q, *"abcdefghijkl")
    one, two, three = (q.join(100) for _ in range(3))
    assert [len(c.pull()) for c in (one, two, three)] == [4, 3, 2]
    while q.look().ready_heads:
        (name,) = q.look().scores("notified")
        next(c for c in (one, two, three) if c.name == name).pull()
    sound(q)


@one_kind
def test_who_is_alone_gets_all(sticky: QueueFixture) -> None:
    """Others that grant nothing take no part."""
    q = sticky
    put(q, *"abcdefghijkl")
    q.join(0)
    assert len(q.join(100).pull()) == 12


@one_kind
def test_buckets_cannot_change_while_there_are_jobs(sticky: QueueFixture) -> None:
    """Each job has its bucket noted."""
    q = sticky
    q.queue.configure(sticky=2)
    put(q, "a1")
    q.queue.configure(sticky=2, rebalance=True)
    with pytest.raises(ConfigError, match="cannot change while the queue has jobs"):
        q.queue.configure(sticky=3)
    with pytest.raises(ConfigError, match="sticky"):
        q.queue.configure(sticky=0)


@one_kind
def test_a_queue_with_jobs_is_not_made_sticky(q: QueueFixture) -> None:
    """Neither owners nor resets mean anything there."""
    put(q, "a1")
    with pytest.raises(ConfigError, match="cannot change while the queue has jobs"):
        q.queue.configure(sticky=16)
    assert q.queue.groups.owner("a") == ""
    assert q.queue.groups.reset("a") == ""


@one_kind
def test_client_and_script_find_the_same_bucket(sticky: QueueFixture) -> None:
    """Also of names that are escaped."""
    q = sticky
    for group in ("a", "Zürich", "x|y;z", "with space"):
        q.put(group, group=group)
    found = {job.id: job.header.bucket for job in q.join(10).pull()}
    assert found == {group: str(bucket_of(group, 1024)) for group in found} and len(found) == 4
