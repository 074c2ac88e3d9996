"""Redis is gone for a while: said once, waited for with a growing delay, said again when over."""

from __future__ import annotations

import errno
from os import getpid
from random import random
from time import monotonic

from rqueue.errors import AuthenticationFailed, ServerError, UnusableServer
from rqueue.logs import logger
from rqueue_workers.outage_log import LASTS_S, OutageLog

log = logger("rqueue.worker")

FIRST_S, LONGEST_S = 0.05, 0.5
"""Seconds between two tries, at first and at most."""

AGAIN_S = 0.5
"""An outage for the same reason so soon after the last one is the same: not logged, and no
beginning of short delays."""


class DescriptorsClosed(Exception):
    """A job closed file descriptors that are the worker's: nothing here can be trusted any more."""


class DescriptorsExhausted(Exception):
    """The process has no file descriptor left for a connection, and for so long none was closed."""


class Outage:
    """Whether Redis can be used, and when to try again. of: the queue that it is needed for, where
    others may be on other servers."""

    def __init__(self, of: str = "") -> None:
        self._proven = False
        self._lines = OutageLog(log, f"worker process {getpid()}", of)
        self.since = 0.0
        """When it began, by monotonic time; 0.0 = Redis is there."""
        self.retry_at = 0.0
        self._tries = 0
        self._over_at = 0.0
        self._said = ""
        self._quiet = False

    def note(self, error: ServerError) -> None:
        """A call failed. Raises what waiting does not mend: the error of a server that cannot be
        used, and DescriptorsClosed where the connection was closed under the worker: what ended
        would be settled over the next one, and nobody charged with it; DescriptorsExhausted where
        for so long there was none for another connection. A login that worked once is
        waited for, as it is while a password changes."""
        if is_closed(error):
            raise DescriptorsClosed from error
        if self.since and monotonic() - self.since >= LASTS_S and _has_none_left(error):
            raise DescriptorsExhausted from error  # another process has some
        patient = self._proven and isinstance(error, AuthenticationFailed)
        if isinstance(error, UnusableServer) and not patient:
            raise error
        now = monotonic()
        if not self.since:
            self.since = now
            # what comes back at once was never over: a server that refuses one command of many
            self._quiet = now - self._over_at < AGAIN_S and str(error) == self._said
            self._said = str(error)
            if not self._quiet:
                self._tries = 0
                self._lines.begins(error, now)
        elif not self._quiet:
            self._lines.lasts(error, now)
        delay = min(LONGEST_S, FIRST_S * 2 ** min(self._tries, 10)) * (0.5 + 0.5 * random())
        self._tries += 1
        self.retry_at = now + delay

    def over(self) -> None:
        """A call succeeded."""
        self._proven = True
        self._lines.known()
        if self.since:
            self._over_at = monotonic()
            if not self._quiet:
                self._lines.over(self._over_at)
            self.since = self.retry_at = 0.0

    @property
    def waiting(self) -> float:
        """Seconds until the next try; 0.0 = now, or no outage."""
        return max(0.0, self.retry_at - monotonic()) if self.since else 0.0


def _has_none_left(error: BaseException | None) -> bool:
    """Whether an error says that the process has as many descriptors as it may."""
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.EMFILE:
            return True
        error = error.__cause__ or error.__context__
    return False


def is_closed(error: BaseException | None) -> bool:
    """Whether an error says that a descriptor was closed under its owner."""
    while error is not None:
        if isinstance(error, DescriptorsClosed):
            return True
        if isinstance(error, OSError) and error.errno == errno.EBADF:
            return True
        error = error.__cause__ or error.__context__
    return False
