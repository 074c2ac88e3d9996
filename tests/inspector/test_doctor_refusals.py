"""Damages of a queue whose consumers refuse jobs are found and repaired."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)


@pytest.mark.parametrize("damage", ["none", "lost", "twice", "misfiled"])
def test_refused_jobs_have_their_place(
    damage: str,
    doctor: Doctor,
    queue: Queue,
    client: redis.Redis,
    consumer: Callable[..., Consumer],
) -> None:
    queue.enqueue_puts([commands.Put(id, b'["t"]') for id in ("a", "b", "c")])
    first = consumer(jobs=1)
    for id in ("a", "b"):
        assert [job.id for job in first.pull()] == [id]
        assert first.refuse(id)
    place = queue.keys.refused(first.term)
    if damage == "lost":
        client.delete(place)
    elif damage == "twice":
        client.rpush(queue.keys.ready(4), "b")
    elif damage == "misfiled":
        client.rename(place, queue.keys.refused("77"))
        client.sadd(queue.keys.base + "refusals", "77")
    other = consumer(jobs=3)
    found = {finding.kind for finding in doctor.check_queue(queue.name)}
    assert damage in found if damage != "none" else not found, found
    assert doctor.heal(queue.name) == []
    assert invariants.of_state(take_snapshot(client, queue.keys)) == []
    assert [job.id for job in other.pull()] == ["a", "b", "c"]
