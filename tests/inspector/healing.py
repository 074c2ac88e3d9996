"""What the doctor's tests do to a queue, and ask of the doctor."""

from collections.abc import Callable

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import INVARIANTS, Doctor, Finding
from rqueue.protocol import commands

Make = Callable[..., Consumer]


def fill(queue: Queue, count: int = 6) -> list[str]:
    """Jobs j0, j1, ...: the even ones of level 4, the odd ones of level 9."""
    ids = []
    for number in range(count):
        put = commands.Put(f"j{number}", b'["t"]', 9 if number % 2 else 4)
        queue.enqueue_puts([put])
        ids.append(put.id)
    return ids


def kinds(found: list[Finding]) -> dict[str, str]:
    assert all(finding.invariant in INVARIANTS for finding in found)
    return {finding.kind: finding.subject for finding in found}


def heals(doctor: Doctor, queue: Queue) -> list[str]:
    """Repair; what was repaired. Nothing is left."""
    repaired: list[Finding] = []
    left = doctor.heal(queue.name, repaired.append)
    assert left == [], left
    return [finding.kind for finding in repaired]


def drain(queue: Queue, make: Make) -> list[str]:
    one = make(jobs=100)
    got = [job.id for job in one.pull()]
    one.settle(ack=got)
    return got
