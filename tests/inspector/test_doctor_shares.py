"""Damages of shares, done by hand, are found, repaired, and nothing is lost."""

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


A2, A3, A4 = member(4, 3, "a2"), member(4, 4, "a3"), member(4, 5, "a4")

DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a strand knows no head": (lambda r, b: r.delete(b + "strands"), {"head", "turn"}),
    "the head of a strand stands nowhere": (
        lambda r, b: (r.zrem(b + "heads", A2), r.zadd(b + "group:4.a", {A2: 5.5e14 + 3})),
        {"turn"},
    ),
    "a strand has a head that is no job": (
        lambda r, b: r.hset(b + "strands", "4.z", "550000000000009" + member(4, 9, "z1")),
        {"turn"},
    ),
    "a later job has the turn": (
        lambda r, b: (
            r.zrem(b + "heads", A2),
            r.zrem(b + "group:4.a", A3),
            r.zadd(b + "heads", {A3: 5e14}),
            r.zadd(b + "group:4.a", {A2: 5.5e14 + 3}),
            r.hset(b + "strands", "4.a", "550000000000004" + A3),
        ),
        {"first"},
    ),
    "a second job has a turn": (
        lambda r, b: (r.zrem(b + "group:4.a", A4), r.zadd(b + "heads", {A4: 5e14})),
        {"head", "lined"},
    ),
    "a turn is one of another level": (
        lambda r, b: r.zadd(b + "heads", {A2: 9.5e14}),
        {"turn"},
    ),
    "those behind are not known": (lambda r, b: r.zrem(b + "blocked", "4.a"), {"strand"}),
    "a strand without any is known": (lambda r, b: r.zadd(b + "blocked", {"4.z": 0}), {"strand"}),
    "those behind are lost": (lambda r, b: r.delete(b + "group:4.a"), {"lost"}),
    "the heads are lost": (lambda r, b: r.delete(b + "heads"), {"lost", "turn"}),
    "one stands in a list": (lambda r, b: r.rpush(b + "ready:4", "a3"), {"twice"}),
    "something else stands behind": (
        lambda r, b: r.zadd(b + "group:4.a", {member(4, 1, "x"): 1}),
        {"stray"},
    ),
    "the number of those behind is wrong": (lambda r, b: r.hset(b + "lined", "4", 7), {"lined"}),
    "it is no number": (lambda r, b: r.hset(b + "lined", "4", "x"), {"lined"}),
}
JOBS = ["a1", "a2", "a3", "a4", "b1", "-1"]


def fill(queue: Queue, consumer: Callable[..., Consumer]) -> Consumer:
    """Of share a one job is held, one has the turn and two stand behind it; b1 is tried later."""
    holder = consumer(jobs=1)
    queue.enqueue_puts([commands.Put("b1", b'["t"]', share="b")])
    (retried,) = holder.pull()
    holder.retry(retried, delay=60)
    queue.enqueue_puts([commands.Put(id, b'["t"]', share="a") for id in JOBS[:4]])
    queue.enqueue_puts([commands.Put("-1", b'["t"]')])
    assert [job.id for job in holder.pull()] == ["a1"]
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
    assert invariants.of_state(take_snapshot(client, queue.keys), JOBS) == []
    holder.settle(ack=["a1"])
    queue.promote("b1")
    done = ["a1", *drained(holder)]
    assert sorted(done) == sorted(JOBS)
    assert [id for id in done if id[0] == "a"] == JOBS[:4]
    assert doctor.check_queue(queue.name) == []
