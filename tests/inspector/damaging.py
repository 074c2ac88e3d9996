"""What tests of damages that the doctor repairs have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection

import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import INVARIANTS, Doctor

__all__ = ["Damage", "drained", "healed", "member"]

Damage = Callable[[redis.Redis, str], object]
"""Done by hand: a client, and how the queue's keys begin."""


def member(level: int, position: int, id: str) -> str:
    """A job as it stands in sorted sets, which was never due."""
    return f"{99 - level:02d}{position:014d}{id}"


def healed(doctor: Doctor, queue: Queue, damage: Damage, kinds: Collection[str]) -> None:
    """Damage the queue; that is found, as one of these kinds at least, and repaired."""
    damage(queue.redis, queue.keys.base)
    found = doctor.check_queue(queue.name)
    assert all(finding.invariant in INVARIANTS for finding in found)
    assert {finding.kind for finding in found}.intersection(kinds), found
    assert doctor.heal(queue.name) == []


def drained(holder: Consumer) -> list[str]:
    """All jobs that are ready, in the order in which they are taken; each is done."""
    done: list[str] = []
    while jobs := holder.pull():
        done += [job.id for job in jobs]
        holder.settle(ack=jobs)
    return done
