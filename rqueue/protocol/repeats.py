"""When a call is sent again after a failure, and what is said when it is not. No I/O.

All that the clients send may be repeated (an enqueue by its id). A connection that broke is tried
again a few times, and so is a slot of a cluster that moves. A server that takes no writes was
perhaps demoted: the same call goes out once more over a new connection, which may lead to the new
primary. A wait for a result has time: an outage is waited for.
"""

from __future__ import annotations

import random
from math import inf
from time import monotonic

from rqueue.errors import (
    ConnectionLost,
    RedisBusy,
    RedisLoading,
    RedisReadOnly,
    RedisTimeout,
    ServerError,
    SlotBusy,
)
from rqueue.protocol.error_mapping import unsure

__all__ = ["Patience", "Repeats"]

TRIES = 4
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

WAITED_FOR = ConnectionLost | RedisTimeout | RedisLoading | RedisBusy | RedisReadOnly
"""What passes by itself, most often: a server that takes no writes is one that was demoted, while
its address is about to lead to another."""

ANEW_S = 5.0
"""A failure so long after the last one has nothing to do with it."""


def _pause_after(failures: int) -> float:
    # the first repeat comes at once: most often the server closed an idle connection
    if failures < 2:
        return 0.0
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
    return float(longest * random.uniform(0.5, 1))


class Repeats:
    """The failures of one call so far. patience: seconds that it may take, all its tries together;
    None: for ever. lost: of a try before the first that is counted here."""

    __slots__ = ("_failures", "_lost", "_patience", "_read_only", "until")

    def __init__(self, patience: float | None = None, lost: ServerError | None = None) -> None:
        self._failures = 0
        self._read_only = False
        self._patience = patience
        self._lost = lost if lost is not None and lost.outcome_unknown else None
        self.until: float | None = None
        """Monotonic time when the call is to have ended; None: it is not known to be late."""

    def pause(self, error: ServerError) -> float:
        """Seconds until the call is to be sent again. Raises where it is not: `error`, or one that
        says that the outcome is not known, because an earlier answer was lost."""
        if error.outcome_unknown and self._lost is None:
            self._lost = error
        again = isinstance(error, ConnectionLost | RedisTimeout | SlotBusy)
        if isinstance(error, RedisTimeout):
            # all the time there is has passed, or another server has to answer in what is left
            self._failures += 1
            again = error.elsewhere and self._left(error) > 0
        elif again:
            self._failures += 1
            again = self._failures < TRIES or (self.until is not None and self.until > monotonic())
        elif isinstance(error, RedisReadOnly) and not self._read_only:
            again = self._read_only = True
        if not again:
            raise error if self._lost is None else unsure(self._lost, error)
        pause = _pause_after(self._failures)
        return pause if self.until is None else min(pause, max(0.0, self.until - monotonic()))

    def _left(self, late: RedisTimeout) -> float:
        """Seconds that are left of the call's time."""
        if self._patience is None:
            return inf if self._failures < TRIES else 0.0
        now = monotonic()
        if self.until is None:
            self.until = now - late.waited + self._patience
        return self.until - now


class Patience:
    """The failures of one wait, which changes nothing: it may be repeated as often as need be."""

    __slots__ = ("_failed_at", "_failures", "_lost")

    def __init__(self) -> None:
        self._failed_at = 0.0
        self._failures = 0
        self._lost: ServerError | None = None

    def pause(self, error: ServerError, left: float) -> float:
        """Seconds, at most LONGEST_PAUSE_S and `left`, until one may ask again. Raises what
        `Repeats.pause` raises where no time is left, or waiting does not mend it."""
        now = monotonic()
        if now - self._failed_at > ANEW_S:
            self._failures, self._lost = 0, None
        self._failed_at = now
        self._failures += 1
        again, pause = left > 0, 0.0
        if isinstance(error, WAITED_FOR):
            if error.outcome_unknown and self._lost is None:
                self._lost = error
            pause = min(max(left, 0.0), _pause_after(self._failures))
        else:
            again = False
        if not again:
            raise error if self._lost is None else unsure(self._lost, error)
        return pause

    @property
    def tried(self) -> bool:
        """Whether it failed so often in a row that a single call would have given up."""
        return self._failures >= TRIES
