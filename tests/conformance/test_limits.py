"""Limits: so many jobs that name one are delivered at a time as it allows, whatever happens."""

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.settling import retried
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


def put(q: QueueFixture, *names: str, most: int = 2, **options: int) -> None:
    """Jobs named "<key><number>" that name the limit of their key; those of "-" name none, those
    of a capital letter also the one of all, of three."""
    for name in names:
        letter = name[0]
        limits = [] if letter == "-" else [JobLimit("crm", most, letter.lower())]
        if letter.isupper():
            limits.append(JobLimit("all", 3))
        q.put(name, limit=tuple(limits), **options)


def settle(c: Consumer, *acks: str) -> list[str]:
    return ids(c.settle(ack=acks, pull=True))


def state(q: QueueFixture, name: str) -> str:
    return execute(q.queue.redis, commands.show(q.queue.keys, name)).state


def empty(q: QueueFixture) -> None:
    """Nothing is left of any limit."""
    keys = q.look().keys
    assert not {"permits", "claims", "heads", "blocked", "reopened"} & keys.keys()
    assert [key for key in keys if key.startswith("group:")] == []
    assert keys["meta"].get(b"blocked", b"0") == b"0"


def notified(q: QueueFixture) -> list[str]:
    return [name for name, row in q.look().consumers.items() if row["state"] == "notified"]


def test_so_many_are_delivered_at_a_time_as_the_limit_allows(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "b1", "-1", "a4")
    c = q.join()
    assert ids(c.pull()) == ["a1", "a2", "b1", "-1"]
    assert ids(c.pull()) == []
    assert state(q, "a3") == "blocked"
    assert settle(c, "b1", "-1") == []
    assert settle(c, "a2") == ["a3"]
    assert settle(c, "a1", "a3") == ["a4"]
    assert settle(c, "a4") == []
    empty(q)


def test_a_job_waits_until_each_of_its_limits_has_a_permit(q: QueueFixture) -> None:
    """A permit that the first one in line cannot use goes to the next one."""
    put(q, "A1", "A2", "A3", "B1", "B2", "B3", "a4")
    c = q.join()
    assert ids(c.pull()) == ["A1", "A2", "B1"]  # three in all
    assert state(q, "A3") == state(q, "B2") == "blocked"
    # of "a" and of all: A3, which waits for "a", has them both
    assert settle(c, "A1") == ["A3"]
    # of "b" and of all: B2 waited for the latter
    assert settle(c, "B1") == ["B2"]
    # of "a" and of all; a4 needs no other, and B3 takes the other
    assert sorted(settle(c, "A2")) == ["B3", "a4"]
    assert settle(c, "A3", "B2", "B3", "a4") == []
    empty(q)


def test_what_one_limit_gives_and_another_refuses_is_offered_to_the_next(q: QueueFixture) -> None:
    """The first in line moves to the limit that refuses it; the permit is not lost with it."""
    both = (JobLimit("narrow", 1), JobLimit("wide", 1))
    q.put("n", limit=(JobLimit("narrow", 1),))
    q.put("w", limit=(JobLimit("wide", 1),))
    q.put("both", limit=both)
    q.put("next", limit=(JobLimit("narrow", 1),))
    c = q.join()
    assert ids(c.pull()) == ["n", "w"]
    assert settle(c, "n") == ["next"]
    assert settle(c, "w") == []
    assert state(q, "both") == "blocked"
    assert settle(c, "next") == ["both"]
    assert settle(c, "both") == []
    empty(q)


def test_priority_goes_first_among_those_that_wait(q: QueueFixture) -> None:
    put(q, "a1", "a2", most=1)
    put(q, "a3", priority=9, most=1)
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["a3"]
    assert settle(c, "a3") == ["a2"]
    assert settle(c, "a2") == []
    empty(q)


@pytest.mark.parametrize("way", ["retry", "reject", "release", "cancel", "unregister"])
def test_a_permit_comes_back_with_the_job(q: QueueFixture, way: str) -> None:
    put(q, "a1", "a2", most=1)
    c, other = q.join(), q.join()
    assert ids(c.pull()) == ["a1"]
    if way == "retry":
        c.settle(retry=[retried("a1", 1, {}, "", True)])
        assert ids(other.pull()) == ["a2"]
        move_time(q.queue, 2_000)
        assert ids(other.pull()) == []
        assert settle(other, "a2") == ["a1"]
        assert settle(other, "a1") == []
    elif way == "reject":
        c.settle(reject=[("a1", {})])
        assert ids(other.pull()) == ["a2"]
        assert settle(other, "a2") == []
    elif way == "release":
        c.settle(release=["a1"])
        assert ids(other.pull()) == ["a1"]
        assert settle(other, "a1") == ["a2"]
        assert settle(other, "a2") == []
    elif way == "cancel":
        assert q.queue.cancel("a2")
        assert settle(c, "a1") == []
    else:
        c.close()
        assert ids(other.pull()) == ["a1"]
        assert settle(other, "a1") == ["a2"]
        assert settle(other, "a2") == []
    empty(q)


def test_one_consumer_is_notified_of_a_permit(q: QueueFixture) -> None:
    """A parked job notifies nobody when it arrives, and one consumer when its permit is there."""
    put(q, "a1", most=1)
    first, second = q.join(), q.join()
    assert ids(first.pull()) == ["a1"]
    assert ids(second.pull()) == []
    put(q, "a2", most=1)
    assert notified(q) == []
    first.settle(ack=["a1"])
    (name,) = notified(q)
    assert ids((first if first.name == name else second).pull()) == ["a2"]
    assert notified(q) == []
