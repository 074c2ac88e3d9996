"""Consumers whose processes die, and leases that end."""

from __future__ import annotations

from typing import Any

import orjson

from rqueue.client._sync.consumer import Consumer
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture

CAUSE = b'{"kind":"crash","type":"SIGSEGV","message":"killed","at":7,"worker":"w"}'


def crash(q: QueueFixture, consumer: Consumer, *ran: str | commands.Ran) -> None:
    """Its process died while it ran these."""
    jobs = [commands.Ran(job) if isinstance(job, str) else job for job in ran]
    call = commands.reclaim(q.queue.keys, consumer.name, CAUSE, jobs)
    assert execute(q.queue.redis, call).held == 0


def note(q: QueueFixture, consumer: Consumer, *ran: commands.Ran) -> int:
    return execute(q.queue.redis, commands.note_running(q.queue.keys, consumer.name, ran))


def end_lease(q: QueueFixture) -> None:
    move_time(q.queue, 60_000)
    q.renew()


def holding(q: QueueFixture, jobs: int = 10, **options: Any) -> Consumer:
    consumer = q.join(jobs, **options)
    consumer.pull()
    return consumer


def lose(q: QueueFixture, jobs: int = 3) -> None:
    """A whole pool dies, and nothing was noted of what it ran."""
    holding(q, jobs, slots=100)
    end_lease(q)


def errors_of(q: QueueFixture, id: str) -> list[dict[str, Any]]:
    shown = execute(q.queue.redis, commands.show(q.queue.keys, id))
    return [orjson.loads(line) for line in shown.errors.splitlines()]
