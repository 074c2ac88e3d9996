"""When a call is sent again after a failure, and what is said when it is not. No I/O.

All that the clients send may be repeated (an enqueue by its id). A connection that broke is tried
again a few times. A server that takes no writes was perhaps demoted: the same call goes out once
more over a new connection, which may lead to the new primary.
"""

from __future__ import annotations

import random

from rqueue.error_mapping import unsure
from rqueue.errors import ConnectionLost, RedisReadOnly, RedisTimeout, ServerError

__all__ = ["Repeats"]

TRIES = 4
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class Repeats:
    """The failures of one call so far. lost: of a try before the first that is counted here."""

    __slots__ = ("_failures", "_lost", "_read_only")

    def __init__(self, lost: ServerError | None = None) -> None:
        self._failures = 0
        self._read_only = False
        self._lost = lost if lost is not None and lost.outcome_unknown else None

    def pause(self, error: ServerError) -> float:
        """Seconds until the call is to be sent again. Raises where it is not: `error`, or one that
        says that the outcome is not known, because an earlier answer was lost."""
        again = isinstance(error, ConnectionLost | RedisTimeout)
        if again:
            # who could not be connected to in all the time there is, is not tried again
            waited = isinstance(error, RedisTimeout) and not error.outcome_unknown
            self._failures += TRIES if waited else 1
            if error.outcome_unknown and self._lost is None:
                self._lost = error
            again = self._failures < TRIES
        elif isinstance(error, RedisReadOnly) and not self._read_only:
            again = self._read_only = True
        if not again:
            raise error if self._lost is None else unsure(self._lost, error)
        # the first repeat comes at once: most often the server closed an idle connection
        if self._failures < 2:
            return 0.0
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**self._failures)
        return float(longest * random.uniform(0.5, 1))
