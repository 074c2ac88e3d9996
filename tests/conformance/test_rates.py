"""Rates: so many jobs that name one are delivered in a time as its bucket has tokens."""

from typing import Any

import pytest

from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands.clock import stop_clock
from rqueue.protocol.commands.limit_notes import permits_state
from rqueue.protocol.credit import WindowCredit
from rqueue.protocol.settling import retried
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


@pytest.fixture(autouse=True)
def still(q: QueueFixture) -> None:
    """The clock moves as the test says."""
    execute(q.queue.redis, stop_clock(q.queue.keys, 1_800_000_000_000))


def put(q: QueueFixture, *names: str, per_ms: int = 1000, burst: int = 1, **more: Any) -> None:
    """Jobs that name the rate of their first letter: one token a second."""
    cost = more.pop("cost", 1)
    for name in names:
        rate = JobLimit("api", 1, name[0], per_ms, burst, cost)
        q.put(name, limit=(rate,), **more)


def state(q: QueueFixture, name: str) -> str:
    return execute(q.queue.redis, commands.show(q.queue.keys, name)).state


def due_in(q: QueueFixture, rate: str = "@api=a") -> float:
    """ms until the next token of a rate that is waited for."""
    now = execute(q.queue.redis, commands.show(q.queue.keys, "none")).now
    return execute(q.queue.redis, permits_state(q.queue.keys)).due[rate] - now


def notified(q: QueueFixture) -> list[str]:
    return [name for name, row in q.look().consumers.items() if row["state"] == "notified"]


def watcher(q: QueueFixture) -> str:
    """The consumer that knows when the next job is due."""
    return q.look().meta["timer"]


def test_one_job_a_second_and_as_many_at_once_as_the_bucket_holds(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "a4", "a5", burst=3)
    c = q.join()
    assert ids(c.pull()) == ["a1", "a2", "a3"]
    assert state(q, "a4") == "blocked"
    assert due_in(q) == 1000
    move_time(q.queue, 999)
    assert ids(c.pull()) == []
    move_time(q.queue, 1)
    assert ids(c.pull()) == ["a4"]
    assert due_in(q) == 1000
    move_time(q.queue, 10_000)
    assert ids(c.pull()) == ["a5"]
    # ten seconds of rest: three tokens, no more, of which a5 took one
    put(q, "a6", "a7", "a8", "a9", burst=3)
    assert ids(c.pull()) == ["a6", "a7"]


def test_each_key_has_a_bucket_and_others_go_on(q: QueueFixture) -> None:
    put(q, "a1", "a2", "b1", "b2")
    q.put("free")
    c = q.join()
    assert ids(c.pull()) == ["a1", "b1", "free"]
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a2", "b2"]


def test_a_job_that_waits_keeps_its_place_in_line(q: QueueFixture) -> None:
    """A token that is due and was not offered yet is that of the first in line."""
    c = q.join()
    put(q, "a1", "a2", "a3")
    assert ids(c.pull()) == ["a1"]
    move_time(q.queue, 1000)
    put(q, "a4")
    assert state(q, "a4") == "blocked"
    assert ids(c.pull()) == ["a2"]
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a3"]
    move_time(q.queue, 1000)
    put(q, "a5", priority=9)
    assert ids(c.pull()) == ["a5"]


def test_what_takes_no_token_yet_leaves_the_bucket_full(q: QueueFixture) -> None:
    """Tokens are set aside for what is ready, and paid when it is taken: a fleet that comes after
    an hour finds no more than the bucket holds."""
    put(q, "a1", "a2", "a3", "a4", burst=2)
    move_time(q.queue, 3_600_000)
    c = q.join()
    assert ids(c.pull()) == ["a1", "a2"]
    assert ids(c.pull()) == []
    assert due_in(q) == 1000


def test_a_job_costs_tokens_and_at_the_most_all(q: QueueFixture) -> None:
    put(q, "a1", cost=3, burst=4)
    put(q, "a2", cost=2, burst=4)
    put(q, "a3", cost=1, burst=4)
    put(q, "a4", cost=9, burst=4)
    put(q, "a5", cost=0, burst=4)
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    assert due_in(q) == 1000  # one is left, a2 takes two; a3 would find its own, but is behind it
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a2"]
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a3"]
    assert due_in(q) == 4000
    move_time(q.queue, 4000)
    assert ids(c.pull()) == ["a4", "a5"]  # the latter costs nothing


def test_the_next_in_line_that_costs_less_goes_when_its_own_are_there(q: QueueFixture) -> None:
    put(q, "a1", cost=4, burst=4)
    put(q, "a2", cost=4, burst=4)
    put(q, "a3", cost=1, burst=4)
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    assert due_in(q) == 4000
    assert q.queue.cancel("a2")
    assert due_in(q) == 1000
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a3"]


@pytest.mark.parametrize("way", ["retry", "retry at once", "release", "reject", "crash"])
def test_each_attempt_pays_and_what_is_released_has_paid(q: QueueFixture, way: str) -> None:
    put(q, "a1", "a2")
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    if way == "retry":
        c.settle(retry=[retried("a1", 0.5, {}, "", True)])
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a1"]
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a2"]
    elif way == "retry at once":
        c.settle(retry=[retried("a1", 0, {}, "", True)])
        assert ids(c.pull()) == []
        assert state(q, "a1") == "blocked"
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a1"]
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a2"]
    elif way == "release":
        c.settle(release=["a1"])
        assert ids(c.pull()) == ["a1"]
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a2"]
    elif way == "reject":
        c.settle(reject=[("a1", {})])
        assert ids(c.pull()) == []
        move_time(q.queue, 1000)
        assert ids(c.pull()) == ["a2"]
    else:
        c.close()
        other = q.join()
        assert ids(other.pull()) == ["a1"]
        move_time(q.queue, 1000)
        assert ids(other.pull()) == ["a2"]


def test_one_consumer_watches_for_the_next_token(q: QueueFixture) -> None:
    """No poll: of those that wait one knows when it is there; the others sleep."""
    all_ = [q.join(), q.join(), q.join()]
    for one in all_:
        assert ids(one.pull()) == []
    put(q, "a1", "a2")
    (name,) = notified(q)
    (taker,) = (one for one in all_ if one.name == name)
    assert ids(taker.pull()) == ["a1"]
    assert notified(q) == []
    assert watcher(q) == taker.name
    for one in all_:
        assert ids(one.pull()) == []
    assert watcher(q) == taker.name
    move_time(q.queue, 1000)
    assert ids(taker.pull()) == ["a2"]
    assert notified(q) == []


def test_a_consumer_that_is_busy_leaves_the_watch_to_another(q: QueueFixture) -> None:
    put(q, "a1", "a2")
    idle = q.join()
    busy = q.join(credit=WindowCredit(1))
    assert ids(busy.pull()) == ["a1"]
    assert notified(q) == [idle.name]
    assert ids(idle.pull()) == []
    assert watcher(q) == idle.name


def test_a_job_of_two_limits_pays_and_waits_for_both(q: QueueFixture) -> None:
    rate, permit = JobLimit("api", 1, "a", 1000, 1), JobLimit("db", 1)
    q.put("a1", limit=(rate, permit))
    q.put("a2", limit=(rate, permit))
    q.put("a3", limit=(permit,))
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    assert ids(c.settle(ack=["a1"], pull=True)) == ["a3"]
    move_time(q.queue, 1000)
    assert ids(c.pull()) == []
    assert ids(c.settle(ack=["a3"], pull=True)) == ["a2"]


def test_a_rate_is_changed_at_run_time(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "a4", "a5")
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    q.queue.limits.set("api", 1, per=10, key="*")
    assert due_in(q) == 1000  # what was paid is paid; the next one comes ten seconds later
    move_time(q.queue, 1000)
    assert ids(c.pull()) == ["a2"]
    assert due_in(q) == 10_000
    q.queue.limits.set("api", 0, per=1, key="*")
    assert ids(c.pull()) == []
    move_time(q.queue, 60_000)
    assert ids(c.pull()) == []
    q.queue.limits.set("api", 2, per=1, key="a")
    assert ids(c.pull()) == ["a3", "a4"]
    assert due_in(q) == 500
    assert q.queue.limits.reset("api", key="a")
    assert q.queue.limits.reset("api", key="*")
    (info,) = q.queue.limits.list()
    assert (info.name, info.key, info.rate, info.most, info.waiting) == ("api", "a", True, None, 1)


def test_buckets_that_say_nothing_any_more_go(q: QueueFixture) -> None:
    c = q.join()
    for number in range(20):
        put(q, f"{chr(97 + number)}1")
    assert len(ids(c.pull())) == 20
    assert len(q.look().scores("rates")) == 20
    move_time(q.queue, 2000)
    for number in range(10):
        put(q, f"{chr(97 + number)}2")
    assert len(ids(c.pull())) == 10
    assert len(q.look().scores("rates")) == 10


def test_a_queue_that_was_paused_goes_on_with_its_tokens(q: QueueFixture) -> None:
    c = q.join()
    put(q, "a1", "a2", "a3")
    assert ids(c.pull()) == ["a1"]
    q.queue.pause()
    c.settle(ack=["a1"])
    move_time(q.queue, 500)
    assert ids(c.pull()) == []
    q.queue.resume()
    assert ids(c.pull()) == []
    assert watcher(q) == c.name
    move_time(q.queue, 500)
    assert ids(c.pull()) == ["a2"]


def test_a_consumer_that_watched_and_left_is_followed_by_another(q: QueueFixture) -> None:
    put(q, "a1", "a2")
    first = q.join()
    assert ids(first.pull()) == ["a1"]
    assert watcher(q) == first.name
    second = q.join()
    assert ids(second.pull()) == []
    first.settle(ack=["a1"])
    first.close()
    assert notified(q) == [second.name]
    assert ids(second.pull()) == []
    assert watcher(q) == second.name


def test_a_bucket_that_becomes_faster_fills_from_then_on(q: QueueFixture) -> None:
    """What an hourly rate still owes does not block it for the hour when it is one of a second."""
    put(q, "a1", "a2", "a3", per_ms=3_600_000)
    c = q.join()
    assert ids(c.pull()) == ["a1"]
    q.queue.limits.set("api", 5, per=1, key="*")
    assert due_in(q) == 200
    move_time(q.queue, 100)
    assert ids(c.pull()) == []
    move_time(q.queue, 100)
    assert ids(c.pull()) == ["a2"]
    assert due_in(q) == 200
