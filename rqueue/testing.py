"""Help for tests of programs that use rqueue: a queue's time, stopped or moved, and its upkeep.

A queue's clock is Redis's own, unless a test moves or stops it. Moved forward, it makes delayed
jobs due, ends leases, passes over consumers that do not answer, and ages the records of ended jobs,
without anybody sleeping. Nobody is woken by it: what a fleet of workers would notice by its timers
is seen by the next look, and `housekeeping` is a look.

Lifetimes that Redis itself counts (of result lists, and of records in an idle queue) do not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

from rqueue.client._sync.queue import Queue
from rqueue.inspector.queues import server_now
from rqueue.model.expect import expect
from rqueue.model.times import parse_when
from rqueue.protocol import commands
from rqueue.transport.redis_client import translated

__all__ = ["FrozenTime", "frozen_time", "housekeeping", "move_time"]

LEASE_MS = 1000
"""Of no consumer: housekeeping renews nobody's lease."""


def move_time(queue: Queue, by: float | timedelta) -> int:
    """Move the clock of `queue` by so many ms (or a timedelta); returns the offset in ms.

    It stays moved until it is moved back by a negative number. A stopped clock is moved too, and
    stays stopped; the offset is then the time at which it stands. Raises the server errors.
    """
    ms = round(by / timedelta(milliseconds=1) if isinstance(by, timedelta) else by)
    with translated(queue.redis, queue=queue.name):
        clock = cast("bytes | None", queue.redis.hget(queue.keys.meta, "clock")) or b"0"
        if not clock.startswith(b"@"):
            return int(queue.redis.hincrby(queue.keys.meta, "clock", ms))
        at_ms = int(clock[1:]) + ms
        queue.redis.hset(queue.keys.meta, "clock", f"@{at_ms}")
        return at_ms


class FrozenTime:
    """A queue's stopped clock; see `frozen_time`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    @property
    def now(self) -> datetime:
        """The time at which it stands, in UTC."""
        return datetime.fromtimestamp(server_now(self._queue.redis, self._queue.keys) / 1000, UTC)

    def move(self, by: float | timedelta) -> datetime:
        """Move it by so many seconds (or a timedelta); returns where it stands then."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        move_time(self._queue, step)
        return self.now


@contextmanager
def frozen_time(queue: Queue, at: datetime | float | None = None) -> Iterator[FrozenTime]:
    """Stop the clock of `queue`, at this moment or at an aware datetime (or Unix time); it goes on
    as Redis's own when the block is left.

    Delays, retries, leases and keeping times are then exact: nothing becomes due by itself, however
    slow the machine is. Raises ConfigError and the server errors.
    """
    expect("queue", queue, Queue, "a Queue")
    with translated(queue.redis, queue=queue.name):
        at_ms = server_now(queue.redis, queue.keys) if at is None else parse_when(at, "at").at_ms
        queue.redis.hset(queue.keys.meta, "clock", f"@{at_ms}")
    try:
        yield FrozenTime(queue)
    finally:
        with translated(queue.redis, queue=queue.name):
            queue.redis.hdel(queue.keys.meta, "clock")


def housekeeping(queue: Queue) -> int:
    """Do at once what a fleet of workers does by its timers: return the jobs of consumers whose
    leases have ended, pass on notifications that were not answered, end waiting jobs that have
    expired, and notify a consumer of work of which none was notified. Returns how many consumers it
    took off the queue. Raises the server errors.
    """
    gone, more = 0, True
    while more:
        renewed = queue._run(commands.renew(queue.keys, LEASE_MS, []))
        gone, more = gone + renewed.reclaimed, renewed.more
    return gone
