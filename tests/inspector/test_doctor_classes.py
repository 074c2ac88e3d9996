"""Queues with selectors: the doctor finds jobs that stand elsewhere, and mends that."""

from collections.abc import Iterator

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.inspector.queues import queue_info
from rqueue.tasks.options import Options
from tests.inspector.damaging import Damage
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)


def member(position: int, id: str) -> str:
    return f"95{position:014d}{id}"


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a class is lost": (lambda r, b: r.delete(b + "class:1"), {"lost"}),
    "a job stands in a list": (
        lambda r, b: (r.zrem(b + "class:1", member(1, "a0")), r.rpush(b + "ready:4", "a0")),
        {"misfiled"},
    ),
    "a job stands in another class": (
        lambda r, b: (
            r.zrem(b + "class:1", member(1, "a0")),
            r.zadd(b + "class:2", {member(1, "a0"): 550000000000001}),
        ),
        {"lost", "misfiled"},
    ),
    "a job stands in its class and in a list": (
        lambda r, b: r.rpush(b + "ready:4", "a0"),
        {"twice"},
    ),
    "an id without a job": (
        lambda r, b: r.zadd(b + "class:2", {member(7, "x"): 550000000000007}),
        {"no-job"},
    ),
}


def put(queue: Queue, *ids: str) -> None:
    for id in ids:
        queue.send("t", [], None, Options(id=id, labels={"x": id[0]}))


def kinds(doctor: Doctor, queue: Queue) -> set[str]:
    found = doctor.check_queue(queue.name)
    return {finding.kind for finding in found if finding.severity == "problem"}


@pytest.fixture
def queue(client: redis.Redis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, redis=client) as queue:
        queue.configure(kind="selectors")
        put(queue, "a0", "b0", "a1", "c0")
        yield queue


def test_a_healthy_queue_has_no_findings(client: redis.Redis, doctor: Doctor, queue: Queue) -> None:
    a = queue.consumer(jobs=1, select="x = 'a'", renew=False).register()
    assert [job.id for job in a.pull()] == ["a0"]
    idle = queue.consumer(jobs=9, select="x = 'd'", renew=False).register()
    assert kinds(doctor, queue) == set()
    info = queue_info(client, queue.keys)
    assert info.unheard == {"x='b'": 1, "x='c'": 1}
    everything = queue.consumer(renew=False).register()
    assert queue_info(client, queue.keys).unheard == {}
    for consumer in (a, idle, everything):
        consumer.close()


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_and_repaired(
    client: redis.Redis, doctor: Doctor, queue: Queue, name: str
) -> None:
    damage, expected = DAMAGES[name]
    damage(client, queue.keys.base)
    found = kinds(doctor, queue)
    assert found & expected, found
    assert [one for one in doctor.heal(queue.name) if one.severity == "problem"] == []
    assert not (wrong := invariants.of_state(take_snapshot(client, queue.keys))), wrong
    taken = queue.consumer(jobs=9, renew=False).register()
    assert {job.id for job in taken.pull()} == {"a0", "b0", "a1", "c0"}
    taken.close()
