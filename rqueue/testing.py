"""Help for tests of programs that use rqueue: moving a queue's time.

A queue's clock is Redis's own, plus an offset that only tests set. Moved forward, it makes delayed
jobs due, ends leases, passes over consumers that do not answer, and ages the records of ended jobs,
without anybody sleeping.
"""

from __future__ import annotations

from datetime import timedelta

from rqueue.client import Queue
from rqueue.connection import translated

__all__ = ["move_time"]


def move_time(queue: Queue, by: float | timedelta) -> int:
    """Move the clock of `queue` by so many ms (or a timedelta); returns the offset in ms.

    It stays moved until it is moved back by a negative number. Nobody is woken by it: what became
    due is seen by whoever looks next, as if the time had passed while nobody looked. Lifetimes that
    Redis itself counts (lists of results) do not move. Raises the server errors.
    """
    ms = by / timedelta(milliseconds=1) if isinstance(by, timedelta) else by
    with translated(queue.redis, queue=queue.name):
        return int(queue.redis.hincrby(queue.keys.meta, "clock", round(ms)))
