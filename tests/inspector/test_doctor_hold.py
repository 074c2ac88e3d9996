"""Damages of a queue with jobs that kept their place until a time are found and repaired."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)


@pytest.mark.parametrize("damage", ["none", "lost", "twice"])
def test_jobs_whose_time_has_come_have_their_place(
    damage: str,
    doctor: Doctor,
    queue: Queue,
    client: redis.Redis,
    consumer: Callable[..., Consumer],
) -> None:
    later = [commands.Put(id, b'["t"]', delay_ms=60_000, hold=True) for id in ("h1", "h2")]
    queue.enqueue_puts([commands.Put("a", b'["t"]'), *later, commands.Put("b", b'["t"]')])
    queue.enqueue_puts([commands.Put("h3", b'["t"]', delay_ms=3_600_000, hold=True)])
    move_time(queue, 60_001)
    holder = consumer(jobs=1)
    assert [job.id for job in holder.pull()] == ["a"]
    if damage == "lost":
        client.delete(queue.keys.heads)
    elif damage == "twice":
        client.rpush(queue.keys.base + "ready:4", "h2")
    found = {finding.kind for finding in doctor.check_queue(queue.name)}
    assert found == (set() if damage == "none" else {damage})
    assert doctor.heal(queue.name) == []
    assert invariants.of_state(take_snapshot(client, queue.keys)) == []
    holder.interest(4)
    assert [job.id for job in holder.pull()] == ["h1", "h2", "b"]
