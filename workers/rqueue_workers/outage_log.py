"""What is logged of an outage of Redis: why it begins, and once more where another reason lasts."""

from __future__ import annotations

from logging import Logger

from rqueue.protocol.advice import describe

__all__ = ["LASTS_S", "OutageLog"]

LASTS_S = 10.0
"""Seconds after which the reason that there is then is logged too: a server that ends its
connections as it stops may come back with another port, or with TLS."""


class OutageLog:
    """The lines about one server, as `who` tells of it: "supervisor: Redis". Times by
    `time.monotonic()`."""

    __slots__ = ("_again", "_known", "_log", "_said", "_since", "_who")

    def __init__(self, log: Logger, who: str) -> None:
        self._log = log
        self._who = who
        self._known = False
        self._said = ""
        self._since = 0.0
        self._again = False

    def begins(self, error: Exception, now: float) -> None:
        """Say why. What to do stands there as long as no call has succeeded; a server that has
        answered once is at the right address, and comes back."""
        self._said, self._since, self._again = str(error), now, False
        why = error if self._known else describe(error)
        self._log.warning("%s is gone: %s; waiting", self._who, why)

    def lasts(self, error: Exception, now: float) -> None:
        """A further try has failed."""
        lasted = now - self._since
        if self._again or lasted < LASTS_S or str(error) == self._said:
            return
        self._again = True
        why = describe(error)
        self._log.warning("%s is still gone after %.0f s: %s; waiting", self._who, lasted, why)

    def known(self) -> None:
        """A call has succeeded."""
        self._known = True

    def over(self, now: float) -> None:
        """Say that it is back."""
        self._log.warning("%s is back after %.1f s", self._who, now - self._since)
