"""Damages of last values, done by hand, are found, repaired, and nothing is lost."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from tests.inspector.damaging import Damage, drained, healed, member
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)

JOBS = ["h1", "s1", "a1", "b1", "-1"]


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "the latest is nobody": (lambda r, b: r.hset(b + "latest", "z", "nobody"), {"latest"}),
    "the latest is of another key": (lambda r, b: r.hset(b + "latest", "z", "a1"), {"latest"}),
    "the latest is not noted": (lambda r, b: r.hdel(b + "latest", "a"), {"older"}),
    "nothing is noted": (lambda r, b: r.delete(b + "latest"), {"older"}),
    "the ready heads are lost": (lambda r, b: r.delete(b + "heads"), {"lost"}),
    "a job with a key stands in a list too": (lambda r, b: r.rpush(b + "ready:4", "a1"), {"twice"}),
    "something else stands among the ready heads": (
        lambda r, b: r.zadd(b + "heads", {member(4, 1, "x"): 1}),
        {"no-job"},
    ),
}


def fill(queue: Queue, consumer: Callable[..., Consumer]) -> Consumer:
    """Of h one is held, of s one to be tried again, of a and b the latest wait."""
    queue.configure(kind="last_value")
    holder = consumer(jobs=2)
    queue.enqueue_puts([commands.Put(id, b'["t"]', key=id[0]) for id in ("h1", "s1")])
    holder.retry(holder.pull()[1], delay=60)
    queue.enqueue_puts([commands.Put(id, b'["t"]', key=id[0]) for id in ("a0", "a1", "b1")])
    queue.enqueue_puts([commands.Put("-1", b'["t"]')])
    return holder


def test_a_healthy_queue_has_no_findings(
    doctor: Doctor, queue: Queue, consumer: Callable[..., Consumer]
) -> None:
    fill(queue, consumer)
    assert doctor.check_queue(queue.name) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_and_repaired(
    name: str,
    doctor: Doctor,
    queue: Queue,
    client: redis.Redis,
    consumer: Callable[..., Consumer],
) -> None:
    holder = fill(queue, consumer)
    damage, kinds = DAMAGES[name]
    healed(doctor, queue, damage, kinds)
    look = take_snapshot(client, queue.keys)
    assert invariants.conservation(look, JOBS) == []
    assert invariants.order(look) == []
    holder.settle(ack=["h1"])
    queue.promote("s1")
    done = drained(holder)
    assert sorted(done) == ["-1", "a1", "b1", "s1"]


def test_of_two_that_wait_the_latest_stays(
    doctor: Doctor, queue: Queue, client: redis.Redis, consumer: Callable[..., Consumer]
) -> None:
    """And the other one ends as displaced."""
    fill(queue, consumer)
    client.hset(queue.keys.latest, "a", "-1")
    base = queue.keys.base
    client.hset(base + "jobs", "b0", b"1,1,4,0,0,0,0|kb;[]")
    client.zadd(base + "heads", {member(4, 1, "b0"): 5.5e14 + 1})
    assert {"older", "latest"} <= {one.kind for one in doctor.check_queue(queue.name)}
    assert doctor.heal(queue.name) == []
    assert queue.job("b0").state() == "displaced"
    assert queue.job("b1").state() == "ready"
