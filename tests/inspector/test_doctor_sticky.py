"""Damages of sticky groups are found and repaired, and nothing is lost."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from rqueue.protocol.policies.sticky import bucket_of
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)

A, B = (str(bucket_of(name, 1024)) for name in "ab")
Damage = Callable[[redis.Redis, str, str], object]
DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "none": (lambda _r, _b, _owner: None, set()),
    "an owner is not there": (lambda r, b, _: r.hset(b + "owners", A, "ghost"), {"owner"}),
    "owners are lost": (lambda r, b, _: r.delete(b + "owners"), {"owner"}),
    "what is ready for an owner is lost": (lambda r, b, o: r.delete(b + "own:" + o), {"turn"}),
    "it stands with another one": (
        lambda r, b, o: r.rename(b + "own:" + o, b + "own:other"),
        {"owner"},
    ),
    "it is anybody's": (
        lambda r, b, o: (
            r.zunionstore(b + "heads", [b + "heads", b + "own:" + o]) and r.delete(b + "own:" + o)
        ),
        {"misfiled"},
    ),
    "it stands with both": (
        lambda r, b, o: r.zunionstore(b + "heads", [b + "heads", b + "own:" + o]),
        {"twice"},
    ),
    "an owner waits and was not notified": (
        lambda r, b, o: (
            r.hset(b + "consumer:" + o, mapping={"jobs": 5, "state": "interested"}),
            r.srem(b + "not_interested", o),
            r.zadd(b + "interested", {o: 1}),
        ),
        {"own"},
    ),
    "owners are of another type": (
        lambda r, b, _: r.delete(b + "owners") and r.set(b + "owners", "x"),
        {"wrong-type"},
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_and_repaired(
    name: str, queue: Queue, client: redis.Redis, consumer: Callable[..., Consumer]
) -> None:
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    queue.configure(sticky=1024)
    queue.enqueue_puts([commands.Put(id, b'["t"]', group=id[0]) for id in ("a1", "a2", "b1")])
    owner = consumer(jobs=1)
    assert [job.id for job in owner.pull()] == ["a1"]
    owner.interest(0)
    owner.release("a1")
    damage, kinds = DAMAGES[name]
    damage(client, queue.keys.base, owner.name)
    found = {finding.kind for finding in doctor.check_queue(queue.name)}
    assert kinds <= found if kinds else not found, found
    assert doctor.heal(queue.name) == []
    assert invariants.of_state(take_snapshot(client, queue.keys)) == []
    owner.interest(3)
    other = consumer(jobs=3)
    seen = []
    for _ in range(4):
        for one in (owner, other):
            for job in one.pull():
                seen.append(job.id)
                one.ack(job)
    assert sorted(seen) == ["a1", "a2", "b1"] and seen.index("a1") < seen.index("a2")
