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

from rqueue.client._sync.queue import Queue
from rqueue.model.expect import expect
from rqueue.model.times import parse_moment
from rqueue.protocol import commands
from rqueue.protocol.commands.clock import move_clock, read_clock, reset_clock, stop_clock
from rqueue.transport.redis_client import execute

__all__ = ["FrozenTime", "frozen_time", "housekeeping", "move_time"]

LEASE_MS = 1000
"""Of no consumer: housekeeping renews nobody's lease."""


def move_time(queue: Queue, by: float | timedelta) -> int:
    """Move the clock of `queue` by so many ms (or a timedelta); returns the offset in ms.

    It stays moved until it is moved back by a negative number. A stopped clock is moved too, and
    stays stopped; the offset is then the time at which it stands. Raises the server errors.
    """
    ms = round(by / timedelta(milliseconds=1) if isinstance(by, timedelta) else by)
    stopped = execute(queue.redis, read_clock(queue.keys)).stopped
    if stopped is None:
        return execute(queue.redis, move_clock(queue.keys, ms))
    execute(queue.redis, stop_clock(queue.keys, stopped + ms))
    return stopped + ms


class FrozenTime:
    """A queue's stopped clock; see `frozen_time`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    @property
    def now(self) -> datetime:
        """The time at which it stands, in UTC."""
        now = execute(self._queue.redis, read_clock(self._queue.keys)).now
        return datetime.fromtimestamp(now / 1000, UTC)

    def move(self, by: float | timedelta) -> datetime:
        """Move it by so many seconds (or a timedelta); returns where it stands then."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        move_time(self._queue, step)
        return self.now


@contextmanager
def frozen_time(queue: Queue, at: datetime | float | str | None = None) -> Iterator[FrozenTime]:
    """Stop the clock of `queue`, at this moment or at an aware datetime (Unix time, ISO text); it
    goes on as Redis's own when the block is left.

    Delays, retries, leases and keeping times are then exact: nothing becomes due by itself, however
    slow the machine is. Raises ConfigError and the server errors.
    """
    expect("queue", queue, Queue, "a Queue")
    if at is None:
        at_ms = execute(queue.redis, read_clock(queue.keys)).now
    else:
        at_ms = parse_moment(at, "at")
    execute(queue.redis, stop_clock(queue.keys, at_ms))
    try:
        yield FrozenTime(queue)
    finally:
        execute(queue.redis, reset_clock(queue.keys))


def housekeeping(queue: Queue) -> int:
    """Do at once what a fleet of workers does by its timers: return the jobs of consumers whose
    leases have ended, pass on notifications that were not answered, end waiting jobs that have
    expired, notify a consumer of work of which none was notified, and send what goes to other
    queues. Returns how many consumers it took off the queue. Raises the server errors.
    """
    gone, more = 0, True
    while more:
        renewed = queue._run(commands.renew(queue.keys, LEASE_MS, []))
        gone, more = gone + renewed.reclaimed, renewed.more
    if renewed.outgoing:
        queue.forward()
    return gone
