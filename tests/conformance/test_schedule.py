"""Jobs that are due later: never early, in due order, at the head of their level, one timer."""

import pytest

from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.due_jobs import MINUTE, pass_minutes, promote, put_at
from tests.support.queue_fixture import QueueFixture, ids


def test_due_jobs_are_next_in_their_level_and_no_higher(q: QueueFixture) -> None:
    """X-06."""
    q.put("later", delay_ms=MINUTE)
    q.put("waits")
    q.put("high", priority=9)
    pass_minutes(q, 2)
    assert ids(q.join().pull()) == ["high", "later", "waits"]


def test_a_promoted_job_that_comes_back_keeps_its_place(q: QueueFixture) -> None:
    """X-06, Q-03."""
    put_at(q, [("a", 1), ("b", 2), ("c", 0)])
    pass_minutes(q, 3)
    consumer = q.join()
    assert ids(consumer.pull()) == ["a", "b", "c"]
    consumer.settle(release=["c", "b", "a"])
    assert ids(consumer.pull()) == ["a", "b", "c"]


def test_a_promoted_job_is_due_where_it_stands(q: QueueFixture) -> None:
    """X-06: it keeps its position, browsers and people see it where it will be taken."""
    put_at(q, [("a", 2), ("b", 1), ("c", 0), ("d", 1), ("e", 1)])
    pass_minutes(q, 3)
    assert promote(q) == 4
    assert q.queue.cancel("d")
    shown: list[str] = []
    cursor = ""
    for _ in range(4):
        page = execute(q.queue.redis, commands.browse(q.queue.keys, cursor, 1))
        shown += ids(page.jobs)
        cursor = page.cursor
    assert shown == ["b", "e", "a", "c"]
    # the cancelled one is among them until the head has passed it
    keys = q.queue.keys
    places = [execute(q.queue.redis, commands.show(keys, id)).place for id in shown]
    assert places == [0, 2, 3, 4]
    got = q.join().pull()
    assert [(job.id, job.position) for job in got] == [("b", 2), ("e", 5), ("a", 1), ("c", 3)]


def test_at_one_instant_higher_levels_come_first(q: QueueFixture) -> None:
    """X-06, H-06: however many are due, and promoted a slice at a time."""
    at_ms = q.queue.counts().now + MINUTE
    q.queue.enqueue_puts([Put(f"j{i}", b"[]", 4, at_ms=at_ms) for i in range(300)])
    q.put("high", priority=9, at_ms=at_ms)
    pass_minutes(q, 2)
    assert ids(q.join(2).pull()) == ["high", "j0"]


def test_due_jobs_stay_in_order_when_the_clock_is_set_back(q: QueueFixture) -> None:
    """A-06: as when another server takes over whose clock is late."""
    put_at(q, [(f"late{i}", 10 + i) for i in range(3)])
    pass_minutes(q, 20)
    assert promote(q) == 3
    pass_minutes(q, -20)
    put_at(q, [("early", 5), ("between", 11.5)])
    pass_minutes(q, 20)
    assert promote(q) == 2
    assert ids(q.join().pull()) == ["early", "late0", "late1", "between", "late2"]


def test_a_due_job_that_is_requeued_or_sent_to_the_tail_is_an_ordinary_one(q: QueueFixture) -> None:
    """X-05, X-06."""
    put_at(q, [("a", 1), ("b", 1), ("c", 1)])
    pass_minutes(q, 2)
    q.put("d")
    consumer = q.join()
    consumer.pull()
    consumer.reject("a", "no")
    consumer.retry("b", delay=0, place="tail")
    consumer.settle(release=["c", "d"])
    q.requeue("a")
    again = consumer.pull()
    assert ids(again) == ["c", "d", "b", "a"]
    assert [job.due_ms > 0 for job in again] == [True, False, False, False]


def test_a_delayed_retry_goes_to_the_head_or_to_the_tail(q: QueueFixture) -> None:
    """X-05."""
    q.put("A", "B", "C")
    consumer = q.join(2)
    consumer.pull()
    consumer.retry("A", delay=30, place="tail")
    consumer.retry("B", delay=30)
    pass_minutes(q, 1)
    q.put("D")
    consumer.interest(10)
    assert ids(consumer.pull()) == ["B", "C", "D", "A"]


def test_a_scheduled_job_is_delivered_on_demand(q: QueueFixture) -> None:
    """A-09."""
    q.put("A", delay_ms=11 * 24 * 60 * MINUTE)
    consumer = q.join(1)
    assert consumer.pull() == []
    assert q.queue.promote("A") == 1
    assert q.state(consumer) == "notified"
    assert ids(consumer.pull()) == ["A"]
    assert q.queue.promote("A") == 0


@pytest.mark.parametrize("order", ["CBADE", "ABCDE", "EDCBA", "BEADC"])
def test_jobs_delivered_on_demand_keep_their_due_order(q: QueueFixture, order: str) -> None:
    """A-09: named in any order; at equal times in the order of their enqueue."""
    for id, minutes in (("C", 3), ("D", 3), ("A", 1), ("B", 2), ("E", 9)):
        q.put(id, delay_ms=minutes * MINUTE)
    q.put("plain")
    assert q.queue.promote(*order, *order) == 5
    assert ids(q.join().pull()) == [*"ABCDE", "plain"]


def test_jobs_delivered_on_demand_keep_their_due_order_while_it_is_paused(q: QueueFixture) -> None:
    """A-09."""
    for id, minutes in (("C", 3), ("A", 1), ("B", 2)):
        q.put(id, delay_ms=minutes * MINUTE)
    q.queue.pause()
    assert q.queue.promote(*"CBA") == 3
    q.queue.resume()
    assert ids(q.join().pull()) == [*"ABC"]


def test_jobs_on_demand_come_behind_those_that_were_due(q: QueueFixture) -> None:
    """A-09, X-06."""
    q.put("due", delay_ms=MINUTE)
    q.put("B", "A", delay_ms=9 * MINUTE)
    move_time(q.queue, 2 * MINUTE)
    assert q.queue.promote("A", "B", "due") == 3
    assert ids(q.join().pull()) == ["due", "B", "A"]


def test_requeued_and_unparked_jobs_keep_their_order(q: QueueFixture) -> None:
    """A-09's kin: to the tail as they are named; back to the places that were kept."""
    consumer = q.join()
    q.put(*"ABCD")
    consumer.flush()
    for id in "DBCA":
        consumer.retry(id, delay=60, place="park")
    assert execute(q.queue.redis, commands.unpark(q.queue.keys, "0", ["t"]))[1] == 4
    consumer.interest(100)
    assert ids(consumer.pull()) == [*"ABCD"]
    for id in "ABCD":
        consumer.reject(id, "no")
    assert q.requeue(*"CAB") == 3
    assert ids(consumer.pull()) == [*"CAB"]


def test_each_queue_has_its_own_schedule(q: QueueFixture) -> None:
    """A-07."""
    other = QueueFixture(q.queue.at(f"{q.queue.name} other"))
    other.put("there", delay_ms=MINUTE)
    q.put("here", delay_ms=3 * MINUTE)
    pass_minutes(other, 2)
    assert ids(other.join().pull()) == ["there"]
    assert q.join().pull() == []
    assert (q.queue.counts().scheduled, other.queue.counts().scheduled) == (1, 0)
    other.close()
