"""Damages of sorted queues, done by hand, are found, repaired, and nothing is lost."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import INVARIANTS, Doctor
from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol import commands
from tests.inspector.damaging import Damage
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)

KEYS = {id: sort_key_text(id[0]) for id in ("h1", "s1", "b1", "a1", "a2")}
BEHIND = 6 * 10**14 - 1


def member(key: str, position: int, id: str) -> str:
    return f"s{key}\0{position:014d}{id}"


A1 = member(KEYS["a1"], 4, "a1")

DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "the ready heads are lost": (lambda r, b: r.delete(b + "heads"), {"lost"}),
    "one of them is lost": (lambda r, b: r.zrem(b + "heads", A1), {"lost"}),
    "one stands in a list too": (lambda r, b: r.rpush(b + "ready:4", "a1"), {"twice"}),
    "one stands in a list instead": (
        lambda r, b: (r.zrem(b + "heads", A1), r.rpush(b + "ready:4", "a1")),
        {"misfiled"},
    ),
    "one stands by another key": (
        lambda r, b: (r.zrem(b + "heads", A1), r.zadd(b + "heads", {member("262", 4, "a1"): 1})),
        {"misfiled"},
    ),
    "one stands by another position": (
        lambda r, b: (
            r.zrem(b + "heads", A1),
            r.zadd(b + "heads", {member(KEYS["a1"], 9, "a1"): BEHIND}),
        ),
        {"misfiled"},
    ),
    "something else stands there": (
        lambda r, b: r.zadd(b + "heads", {member("261", 9, "x"): 1, "s": 2, "s1": 3}),
        {"no-job"},
    ),
}


def fill(queue: Queue, consumer: Callable[..., Consumer]) -> None:
    """One is held, one to be tried again, three wait."""
    holder = consumer(jobs=2)
    puts = [commands.Put(id, b'["t"]', sort=key) for id, key in KEYS.items()]
    queue.enqueue_puts(puts[:2])
    holder.retry(holder.pull()[1], delay=60)
    queue.enqueue_puts(puts[2:])
    queue.enqueue_puts([commands.Put("-1", b'["t"]')])


def test_a_healthy_queue_has_no_findings(
    doctor: Doctor, queue: Queue, consumer: Callable[..., Consumer]
) -> None:
    fill(queue, consumer)
    assert doctor.check_queue(queue.name) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_repaired(
    doctor: Doctor,
    client: redis.Redis,
    queue: Queue,
    consumer: Callable[..., Consumer],
    damage: str,
) -> None:
    fill(queue, consumer)
    act, kinds = DAMAGES[damage]
    act(client, queue.keys.base)
    found = doctor.check_queue(queue.name)
    assert found
    assert {finding.kind for finding in found} <= kinds
    assert {finding.invariant for finding in found} <= INVARIANTS.keys()
    assert doctor.heal(queue.name) == []
    assert doctor.check_queue(queue.name) == []
    assert invariants.of_state(take_snapshot(client, queue.keys)) == []
    ready = [job.id for job in consumer(jobs=9).pull()]
    assert ready == ["-1", "a1", "a2", "b1"]
