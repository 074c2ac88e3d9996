"""Consumers that hold very much: what they held goes back in bounded steps, each as short as the
last one, however much there is."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands
from rqueue.protocol.commands import Window
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids, on_real_servers, one_kind

MANY = 20_000


def fill(queue: Queue, count: int, first: int = 0) -> None:
    """Enqueue jobs whose ids say their places."""
    for at in range(first, first + count, 1000):
        puts = [commands.Put(f"{i:06}", b'["t"]') for i in range(at, min(at + 1000, first + count))]
        execute(queue.redis, commands.enqueue(queue.keys, puts))


def holding(q: QueueFixture, count: int, jobs: int | None = None) -> Consumer:
    """A consumer that holds `count` jobs."""
    consumer = q.join(jobs or count)
    window = Window(count)
    taken = 0
    while taken < count:
        call = commands.pull(q.queue.keys, consumer.name, str(consumer.term), window)
        taken += len(execute(q.queue.redis, call).jobs) // 2
    return consumer


def steps_of(q: QueueFixture) -> list[float]:
    """Renew until nothing of the dead is left; the seconds that each step took."""
    took = []
    more = True
    while more:
        began = time.perf_counter()
        more = execute(q.queue.redis, commands.renew(q.queue.keys, 1000, [])).more
        took.append(time.perf_counter() - began)
    return took


@one_kind
def test_a_lease_that_ends_releases_in_bounded_steps_that_follow_at_once(q: QueueFixture) -> None:
    """A dead host's jobs come back at the next renewal, in their places."""
    fill(q.queue, MANY)
    holding(q, MANY)
    move_time(q.queue, 60_000)
    took = steps_of(q)
    assert len(took) == MANY // 200
    counts = q.queue.counts()
    assert (counts.held, counts.ready) == (0, MANY)
    first = q.join(500).pull()
    assert ids(first) == [f"{i:06}" for i in range(500)]
    # a step does not grow with what is held: the median of the first ones, which see much more
    # than the last ones do, is not much above theirs
    quarter = len(took) // 4
    early, late = sorted(took[:quarter]), sorted(took[-quarter:])
    assert early[quarter // 2] < 3 * late[quarter // 2] + 0.001


@on_real_servers
def test_many_dead_consumers_are_gone_after_one_renewal_and_what_follows(q: QueueFixture) -> None:
    fill(q.queue, 64 * 3)
    for _ in range(64):
        holding(q, 3)
    idle = [q.join(1) for _ in range(40)]
    move_time(q.queue, 60_000)
    steps = steps_of(q)
    assert len(steps) < 12
    assert q.look().consumers == {}
    assert idle
    got = [id for _ in range(2) for id in ids(q.join(100).pull())]
    assert got == [f"{i:06}" for i in range(192)]


def turn(q: QueueFixture, consumer: Consumer, first: list[str]) -> None:
    """What it took first goes back and is taken again: it stands behind later ones now."""
    for at in range(0, len(first), 500):
        call = commands.settle(
            q.queue.keys, consumer.name, str(consumer.term), None, release=first[at : at + 500]
        )
        assert execute(q.queue.redis, call).refused == []
    for _ in range(0, len(first), 500):
        call = commands.pull(q.queue.keys, consumer.name, str(consumer.term), Window(3000))
        execute(q.queue.redis, call)


@one_kind
@pytest.mark.parametrize("turned", [0, 1000], ids=["in order", "turned"])
@pytest.mark.parametrize("where", ["head", "tail", "both", "middle", "close", "scattered"])
def test_what_is_settled_out_of_order_leaves_the_others_as_they_were(
    q: QueueFixture, where: str, turned: int
) -> None:
    fill(q.queue, 3000)
    consumer = holding(q, 3000)
    held = [f"{i:06}" for i in range(3000)]
    turn(q, consumer, held[:turned])
    held = held[turned:] + held[:turned]
    assert q.look().held[consumer.name] == held
    some = {
        "head": held[1:101:2],
        "tail": held[:-101:-1],
        "both": [*held[5:10], *held[-10:-5], held[-1]],
        "middle": held[1400:1600:3],
        "close": [*held[700:900], *held[1300:1500:2], *held[2100:2200]],
        "scattered": held[3::97],
    }[where]
    call = commands.settle(
        q.queue.keys,
        consumer.name,
        str(consumer.term),
        None,
        ack=some[::2],
        release=[*some[1::2], "stranger", some[1]],
    )
    refused = execute(q.queue.redis, call).refused
    assert refused == [b"stranger", some[1].encode()]
    left = [id for id in held if id not in some]
    assert q.look().held[consumer.name] == left
    assert q.look().lists["ready:4"] == sorted(some[1::2])


@one_kind
def test_what_leaves_the_middle_is_found_by_its_position(q: QueueFixture) -> None:
    """Held jobs in the queue's order are not searched from one end to the other."""
    fill(q.queue, 6000)
    consumer = holding(q, 6000)
    some = [f"{i:06}" for i in range(3000, 4000, 4)]
    call = commands.settle(q.queue.keys, consumer.name, str(consumer.term), None, release=some)
    q.queue.redis.config_resetstat()
    execute(q.queue.redis, call)
    stats: Any = q.queue.redis.info("commandstats")
    assert "cmdstat_lpos" not in stats
    assert stats["cmdstat_lindex"]["calls"] < 150
    assert stats["cmdstat_lrange"]["calls"] < 20
    assert q.look().lists["ready:4"] == some


@pytest.mark.parametrize(
    ("q", "jobs"), [("consumer", MANY), ("asyncio", 2000), ("worker", 2000)], indirect=["q"]
)
def test_a_consumer_with_very_much_leaves_in_time(q: QueueFixture, jobs: int) -> None:
    """In steps that any client asks for: the script that takes them is the same."""
    fill(q.queue, jobs)
    consumer = holding(q, jobs)
    began = time.perf_counter()
    consumer.close()
    assert time.perf_counter() - began < 3, "0.3 s by itself, and the time grew with the square"
    assert q.look().lists["ready:4"] == [f"{i:06}" for i in range(jobs)]
