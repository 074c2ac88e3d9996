"""At most so many consumers are live, the others stand by and take over in their order."""

from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import ConfigError, ConsumerRefused, RegistrationLost
from rqueue.inspector import Inspector
from rqueue.protocol import commands
from rqueue.testing import housekeeping, move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


def standing_by(q: QueueFixture) -> list[str]:
    with Inspector(redis=q.queue.redis) as inspector:
        found = [info for info in inspector.consumers(q.queue.name) if info.standby]
    return [info.name for info in sorted(found, key=lambda info: info.standby)]


def takes_over(q: QueueFixture, consumer: Consumer) -> bool:
    """Whether it was notified, and stands by no more."""
    return consumer.name not in standing_by(q) and q.unread(consumer) == [b"w"]


def test_AGX_12_the_first_consumer_gets_all_in_order_and_the_others_none(q: QueueFixture) -> None:
    """C-31."""
    q.queue.configure(live_consumers=1)
    first, *others = [q.join(jobs=10) for _ in range(3)]
    got: list[str] = []
    for consumer in (first, *others):
        assert consumer.pull() == []
    q.put(*(f"j{n}" for n in range(30)))
    for _ in range(3):
        jobs = [*others[0].pull(), *others[1].pull(), *first.pull()]
        for wake in first.wait(0):
            assert wake.job is None or wake.job
        jobs = first.pull(recall=True) if len(jobs) < 10 else jobs
        got += ids(jobs)
        first.settle(ack=ids(jobs))
    assert got == [f"j{n}" for n in range(30)]
    assert [q.unread(other) for other in others] == [[], []]
    assert standing_by(q) == [other.name for other in others]


def test_one_that_stands_by_is_delivered_nothing_and_waits(q: QueueFixture) -> None:
    """Not even directly, or as the one with the highest priority."""
    q.queue.configure(live_consumers=1)
    live = q.join(jobs=1)
    standby = q.join(jobs=5, priority=9)
    assert live.pull() == [] and standby.pull() == []
    assert q.put("A").handed_to == live.name
    assert q.put("B").handed_to == ""
    assert standby.pull() == [] and q.state(standby) == "not_interested"
    assert standby.interest(7) == "not_interested"
    assert q.unread(standby) == []


def test_they_take_over_in_the_order_of_priority_and_registration(q: QueueFixture) -> None:
    """Q-68."""
    q.queue.configure(live_consumers=1)
    live, low, high, other = q.join(), q.join(), q.join(priority=5), q.join()
    assert standing_by(q) == [high.name, low.name, other.name]
    q.put("A", "B")
    live.close()
    assert takes_over(q, high) and standing_by(q) == [low.name, other.name]
    assert ids(high.pull()) == ["A", "B"]
    low.close()
    high.close()
    assert takes_over(q, other)
    assert ids(other.pull()) == ["A", "B"]


def test_A_28_the_next_begins_when_the_last_job_is_back(q: QueueFixture) -> None:
    """The lease of the live one ends, and its jobs go back in slices."""
    q.queue.configure(live_consumers=1)
    q.put(*(f"j{n}" for n in range(250)))
    live = q.own(jobs=500)
    assert len(live.pull()) == 250
    standby = q.join(jobs=500, lease=600)
    move_time(q.queue, 31_000)
    call = commands.renew(q.queue.keys, 600_000, [standby.name])
    assert execute(q.queue.redis, call).more
    assert standing_by(q) == [standby.name] and standby.pull() == []
    assert not execute(q.queue.redis, call).more
    assert takes_over(q, standby)
    assert ids(standby.pull()) == [f"j{n}" for n in range(250)]


def test_a_live_consumer_without_credit_stays_live(q: QueueFixture) -> None:
    q.queue.configure(live_consumers=1)
    live, standby = q.join(jobs=1), q.join()
    live.pull()
    live.interest(0)
    q.put("A")
    housekeeping(q.queue)
    assert standby.pull() == [] and standing_by(q) == [standby.name]
    live.interest(1)
    assert ids(live.pull()) == ["A"]


def test_several_are_live(q: QueueFixture) -> None:
    q.queue.configure(live_consumers=2)
    one, two, three = q.join(jobs=1), q.join(jobs=1), q.join(jobs=1)
    q.put("A", "B", "C")
    assert [ids(one.pull()), ids(two.pull()), ids(three.pull())] == [["A"], ["B"], []]
    two.close()
    assert ids(three.pull()) == ["B"]


def test_who_was_there_first_is_live_and_stays_so(q: QueueFixture) -> None:
    """Q-68: a lower number stops nobody; a higher one lets others begin."""
    one, two = q.join(jobs=1), q.join(jobs=1)
    q.queue.configure(live_consumers=1)
    three, four = q.join(jobs=1), q.join(jobs=1)
    q.put("A", "B", "C", "D")
    assert [ids(one.pull()), ids(two.pull()), ids(three.pull())] == [["A"], ["B"], []]
    two.close()
    assert standing_by(q) == [three.name, four.name]
    q.queue.configure(live_consumers=2)
    assert takes_over(q, three) and standing_by(q) == [four.name]
    assert ids(three.pull()) == ["B"]
    q.queue.configure(live_consumers=0)
    assert takes_over(q, four)
    assert ids(four.pull()) == ["C"]


def test_a_queue_without_a_live_one_is_set_right_by_who_looks_next(q: QueueFixture) -> None:
    """A name that is registered no more is not live."""
    q.queue.configure(live_consumers=1)
    live, standby = q.join(), q.join()
    live.close()
    q.queue.redis.srem(q.queue.keys.live, standby.name)
    q.queue.redis.sadd(q.queue.keys.live, "ghost")
    q.queue.redis.zadd(q.queue.keys.standbys, {standby.name: 1})
    housekeeping(q.queue)
    assert standing_by(q) == []
    q.put("A")
    assert ids(standby.pull()) == ["A"]


def test_QBA_12_an_exclusive_queue_refuses_a_second_consumer(q: QueueFixture) -> None:
    """Q-18: a browser is none; and a queue with two cannot become exclusive."""
    q.queue.configure(strict=True)
    first = q.join()
    q.put("A")
    assert ids(first.flush()) == ["A"]
    before = q.look()
    with pytest.raises(ConsumerRefused, match="exclusive"):
        q.join()
    after = q.look()
    assert (after.meta, after.consumers) == (before.meta, before.consumers)
    q.join(mode="browse")
    first.close()
    other = q.join()
    with pytest.raises(ConsumerRefused, match="exclusive"):
        q.join()
    q.queue.configure(strict=False)
    q.join()
    with pytest.raises(ConfigError, match="strict: cannot be: the queue has 2 consumers"):
        q.queue.configure(strict=True)
    other.close()
    q.queue.configure(strict=True)


def test_an_exclusive_queue_gives_nobody_else_a_job(q: QueueFixture) -> None:
    """Q-18: `get` is refused where there is a consumer, and makes none where there is none."""
    q.queue.configure(strict=True)
    q.put("A", "B")
    only = q.join(1)
    with pytest.raises(ConsumerRefused, match="exclusive"):
        q.queue.get()
    assert ids(only.pull()) == ["A"]
    only.close()
    assert (got := q.queue.get()) is not None and got.id == "A"
    assert ids(q.join().pull()) == ["B"]


@pytest.mark.parametrize("limit", [{"strict": True}, {"max_consumers": 1}], ids=str)
def test_who_died_makes_way_when_its_lease_is_over(q: QueueFixture, limit: dict[str, Any]) -> None:
    """Q-18, A-36: also where nobody looks after the queue but the one that comes."""
    q.queue.configure(**limit)
    q.put("A", "B")
    dead = q.join(1)
    assert ids(dead.pull()) == ["A"]
    with pytest.raises(ConsumerRefused):
        q.join()
    move_time(q.queue, 60_000)
    assert ids(q.join().pull()) == ["A", "B"]
    with pytest.raises(RegistrationLost):
        dead.ack("A")
    with pytest.raises(ConsumerRefused):
        q.join()


def test_AMI_05_a_queue_has_so_many_consumers(q: QueueFixture) -> None:
    """A-36."""
    q.queue.configure(max_consumers=2)
    one = q.join()
    q.join()
    with pytest.raises(ConsumerRefused, match=r"takes 2 consumers \(max_consumers\)"):
        q.join()
    one.close()
    q.join()
