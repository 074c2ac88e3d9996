"""Damages of groups, done by hand, are found, repaired, and nothing is lost."""

from collections.abc import Callable
from itertools import pairwise

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


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a turn is with nobody": (
        lambda r, b: r.hset(b + "groups", "a", "nobody"),
        {"turn", "no-turn"},
    ),
    "a turn is lost, and its job waits": (lambda r, b: r.hdel(b + "groups", "a"), {"turn"}),
    "a turn is lost, and its job is held": (lambda r, b: r.hdel(b + "groups", "h"), {"turn"}),
    "all turns are lost": (lambda r, b: r.delete(b + "groups"), {"turn"}),
    "a group that waits is not known": (lambda r, b: r.zrem(b + "blocked", "a"), {"group"}),
    "one that does not wait is known": (
        lambda r, b: r.zadd(b + "blocked", {"z": 0}),
        {"group"},
    ),
    "those behind are lost": (lambda r, b: r.delete(b + "group:a"), {"lost"}),
    "the ready heads are lost": (lambda r, b: r.delete(b + "heads"), {"turn"}),
    "two of a group are ready": (
        lambda r, b: r.zadd(b + "heads", {member(4, 4, "a2"): 5.5e14 + 4}),
        {"twice"},
    ),
    "one of a group stands at a wrong place of the ready heads": (
        lambda r, b: r.zadd(b + "heads", {member(4, 2, "a2"): 5.5e14 + 2}),
        {"twice"},
    ),
    "one of a group stands in a list": (lambda r, b: r.rpush(b + "ready:4", "a1"), {"twice"}),
    "something else stands behind": (
        lambda r, b: r.zadd(b + "group:a", {member(4, 1, "x"): 1}),
        {"stray"},
    ),
    "something else stands among the ready heads": (
        lambda r, b: r.zadd(b + "heads", {member(4, 1, "x"): 1}),
        {"no-job"},
    ),
    "the number of blocked jobs is wrong": (
        lambda r, b: r.hset(b + "meta", "blocked", "77"),
        {"blocked"},
    ),
}


def fill(queue: Queue, consumer: Callable[..., Consumer]) -> Consumer:
    """Of h one is held and one waits behind it; of a three wait, of s one to be tried again."""
    queue.configure(kind="groups")
    holder = consumer(jobs=2)
    queue.enqueue_puts([commands.Put(id, b'["t"]', group=id[0]) for id in ("h1", "s1")])
    (held, retried) = holder.pull()
    assert (held.id, retried.id) == ("h1", "s1")
    holder.retry(retried, delay=60)
    queue.enqueue_puts(
        [commands.Put(id, b'["t"]', group=id[0]) for id in ("a1", "a2", "a3", "h2", "s2")]
    )
    queue.enqueue_puts([commands.Put(id, b'["t"]') for id in ("-1", "-2")])
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
    assert invariants.of_state(look, ["h1", "s1", "a1", "a2", "a3", "h2", "s2", "-1", "-2"]) == []
    holder.settle(ack=["h1"])
    queue.promote("s1")
    done = drained(holder)
    assert sorted(done) == ["-1", "-2", "a1", "a2", "a3", "h2", "s1", "s2"]
    mine = [id for id in done if id[0] == "a"]
    assert all(one < other for one, other in pairwise(mine)), done
