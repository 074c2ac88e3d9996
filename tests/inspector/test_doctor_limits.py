"""Damages of limits, done by hand, are found, repaired, and nothing is lost."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from rqueue.testing import move_time
from tests.inspector.damaging import Damage, drained, healed, member
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "too many permits are out": (lambda r, b: r.hset(b + "permits", "a", 7), {"permits"}),
    "no permit is out": (lambda r, b: r.delete(b + "permits"), {"permits"}),
    "a number is none": (lambda r, b: r.hset(b + "permits", "a", "x"), {"permits"}),
    "nobody has permits": (lambda r, b: r.delete(b + "claims"), {"permits", "no-permit"}),
    "a job that is not there has a permit": (
        lambda r, b: (r.hset(b + "claims", "ghost", "a"), r.hset(b + "permits", "a", 3)),
        {"leaked"},
    ),
    "many that are not there have permits": (
        lambda r, b: (
            r.hset(b + "claims", mapping={f"ghost{n}": "a" for n in range(120)}),
            r.hset(b + "permits", "a", 122),
        ),
        {"leaked"},
    ),
    "two limits are miscounted": (
        lambda r, b: r.hset(b + "permits", mapping={"a": 1, "b": 5}),
        {"permits"},
    ),
    "a job that waits has a permit": (
        lambda r, b: (r.hset(b + "claims", "a3", "a"), r.hset(b + "permits", "a", 3)),
        {"leaked"},
    ),
    "a limit that is waited for is not known": (lambda r, b: r.zrem(b + "blocked", "a"), {"limit"}),
    "one that is not waited for is known": (
        lambda r, b: r.zadd(b + "blocked", {"z": 0}),
        {"limit"},
    ),
    "what is free is offered to nobody": (
        lambda r, b: r.hset(b + "limits", "a", 3),
        {"not-offered"},
    ),
    "those that wait are lost": (lambda r, b: r.delete(b + "group:a"), {"lost"}),
    "the ready ones are lost": (lambda r, b: r.delete(b + "heads"), {"lost"}),
    "one that waits is ready": (
        lambda r, b: r.zadd(b + "heads", {member(4, 3, "a3"): 5.5e14 + 3}),
        {"twice"},
    ),
    "one stands in a list": (lambda r, b: r.rpush(b + "ready:4", "a3"), {"twice"}),
    "something else waits": (
        lambda r, b: r.zadd(b + "group:a", {member(4, 1, "x"): 1}),
        {"stray"},
    ),
    "the number of blocked jobs is wrong": (
        lambda r, b: r.hset(b + "meta", "blocked", "77"),
        {"blocked"},
    ),
}
JOBS = ["a1", "a2", "a3", "a4", "b1", "-1"]


def fill(queue: Queue, consumer: Callable[..., Consumer]) -> Consumer:
    """Of limit a, which allows 2, one job is held, one is ready and two wait; b1 is tried later."""
    holder = consumer(jobs=1)
    put = commands.Put("b1", b'["t"]', limits=("a:2", "b:1"))
    queue.enqueue_puts([put])
    (retried,) = holder.pull()
    holder.retry(retried, delay=60)
    queue.enqueue_puts([commands.Put(id, b'["t"]', limits=("a:2",)) for id in JOBS[:4]])
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
    assert doctor.check_queue(queue.name) == []


RATE_DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "nobody knows when the next tokens come": (
        lambda r, b: r.delete(b + "tokens_due"),
        {"untimed"},
    ),
    "tokens are set aside for nobody": (lambda r, b: r.hset(b + "permits", "@r", 2), {"permits"}),
    "nobody has paid": (lambda r, b: r.delete(b + "claims"), {"no-permit"}),
}


@pytest.mark.parametrize("name", RATE_DAMAGES)
def test_a_damaged_rate_is_found_and_repaired(
    name: str,
    doctor: Doctor,
    queue: Queue,
    client: redis.Redis,
    consumer: Callable[..., Consumer],
) -> None:
    holder = consumer(jobs=9)
    rate = ("@r:1/3600000+1*1",)
    queue.enqueue_puts([commands.Put(id, b'["t"]', limits=rate) for id in ("r1", "r2")])
    assert [job.id for job in holder.pull()] == ["r1"]
    assert doctor.check_queue(queue.name) == []
    damage, kinds = RATE_DAMAGES[name]
    damage(client, queue.keys.base)
    found = {finding.kind for finding in doctor.check_queue(queue.name)}
    assert kinds & found or (not kinds and not found)
    assert doctor.heal(queue.name) == []
    assert invariants.of_state(take_snapshot(client, queue.keys), ["r1", "r2"]) == []
    move_time(queue, 7_200_000)
    (job,) = holder.pull()
    assert job.id == "r2"
