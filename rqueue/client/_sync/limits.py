# Generated from rqueue/client/_async/limits.py (`make generate`): do not edit.
"""What the limits of a queue allow, and how far they are used."""

from __future__ import annotations

from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.model.job_limit import JobLimit, check_most
from rqueue.model.names import check_key, check_name_of_limit
from rqueue.protocol import commands
from rqueue.protocol.commands.limits import LimitInfo

__all__ = ["Limits"]


class Limits:
    """`queue.limits`."""

    def __init__(self, queue: QueueCalls) -> None:
        self._queue = queue

    def set(self, name: str, most: int, *, key: str = "") -> bool:
        """Let a limit allow so many jobs at a time, whatever its jobs say; key: only for this one,
        else for all that nothing is said of. 0: none is delivered. What runs goes on where it is
        lower; jobs that wait get their permits at once where it is higher. True if something was
        set before. Raises ConfigError, InvalidName."""
        check_most(most, least=0)
        return self._say(name, key, most)

    def reset(self, name: str, *, key: str = "") -> bool:
        """Forget what was set: jobs say how many again. True if something was set."""
        return self._say(name, key, None)

    def _say(self, name: str, key: str, most: int | None) -> bool:
        check_name_of_limit(name)
        if key:
            check_key(key)
        field = JobLimit(name, 1, key).field
        return self._queue._run(commands.set_limit(self._queue.keys, field, most))

    def list(self) -> list[LimitInfo]:
        """All limits of which permits are out, or that are waited for or set, by name and key."""
        return self._queue._run(commands.read_limits(self._queue.keys))
