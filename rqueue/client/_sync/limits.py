# Generated from rqueue/client/_async/limits.py (`make generate`): do not edit.
"""What the limits of a queue allow, and how far they are used."""

from __future__ import annotations

from datetime import timedelta

from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.errors import ConfigError
from rqueue.model.job_limit import JobLimit, allows_text, check_most
from rqueue.protocol import commands
from rqueue.protocol.commands.limits import LimitInfo
from rqueue.tasks.limits import rate_ms

__all__ = ["Limits"]


class Limits:
    """`queue.limits`."""

    def __init__(self, queue: QueueCalls) -> None:
        self._queue = queue

    def set(
        self,
        name: str,
        most: int,
        *,
        per: str | float | timedelta | None = None,
        burst: int | None = None,
        key: str = "",
    ) -> bool:
        """Let a limit allow so many jobs at a time, whatever its jobs say; with `per`, let a rate
        allow so many in that time, and `burst` at once (None: `most`). 0: none is delivered. What
        runs goes on if it is lower; jobs that wait get their permits at once if it is higher. True
        if something was set before.

        key: of a limit with `key=`, the number holds for this key; "*" for all keys of which
        nothing else is set. Without it the number holds for the limit without a key.

        Raises ConfigError, InvalidName."""
        check_most(most, least=0)
        if per is None and burst is not None:
            raise ConfigError("burst", "a burst is one of a rate: say `per`")
        limit = JobLimit(name, 1, key, 0 if per is None else rate_ms(per))
        once = 0 if burst is None else check_most(burst, what="the burst")
        return self._say(limit, allows_text(most, limit.per_ms, once))

    def reset(self, name: str, *, key: str = "") -> bool:
        """Forget what was set for the limit and for the rate of this name: jobs say how many again.
        key: as of `set`. True if something was set."""
        known = [self._say(JobLimit(name, 1, key, per_ms), "") for per_ms in (0, 1)]
        return any(known)

    def _say(self, limit: JobLimit, allows: str) -> bool:
        return self._queue._run_here(
            commands.set_limit(self._queue.keys, limit.check().settable, allows)
        )

    def list(self) -> list[LimitInfo]:
        """All limits of which permits are out, or that are waited for or set, by name and key."""
        return self._queue._run_here(commands.read_limits(self._queue.keys))
