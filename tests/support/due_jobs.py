"""Jobs that are due later, in tests: by minutes of the queue's clock, which is moved, or waited for
in real time."""

from typing import Any

from rqueue.client._sync.consumer import Consumer
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture

MINUTE = 60_000


def put_at(q: QueueFixture, given: list[tuple[str, float]]) -> None:
    """Enqueue (id, minutes from now), counted from one instant; 0: a plain job."""
    start = q.queue.counts().now
    for id, minutes in given:
        options: dict[str, Any] = {"at_ms": start + round(minutes * MINUTE)} if minutes else {}
        q.put(id, **options)


def pass_minutes(q: QueueFixture, minutes: float) -> None:
    move_time(q.queue, minutes * MINUTE)


def promote(q: QueueFixture) -> int:
    """What is due becomes ready, and nobody takes it."""
    return execute(q.queue.redis, commands.promote(q.queue.keys))


def take(consumer: Consumer, count: int) -> list[tuple[Delivery, int]]:
    """Pull until so many jobs came, in real time; each with Redis's clock when it came. What is
    not due yet is waited for, as a worker waits: until a wake-up or until the timer."""
    taken: list[tuple[Delivery, int]] = []
    while len(taken) < count:
        came = consumer.pull()
        taken += [(job, consumer.now) for job in came]
        if not came:
            wait = consumer.timer_ms / 1000 if consumer.timer_ms >= 0 else PATIENCE
            wakes = consumer.wait(wait)
            assert wakes or consumer.timer_ms >= 0, f"{len(taken)} of {count} jobs came"
            taken += [(wake.job, consumer.now) for wake in wakes if wake.job]
    assert len(taken) == count, [job.id for job, _ in taken]
    return taken
