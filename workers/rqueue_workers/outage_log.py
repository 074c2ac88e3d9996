"""What is logged of an outage of Redis: why it begins, and once more where another reason lasts.
Of a node of a cluster one line stands for all its queues."""

from __future__ import annotations

from logging import Logger
from os import getpid

from rqueue.errors import ServerError
from rqueue.protocol.advice import describe

__all__ = ["LASTS_S", "OutageLog"]

LASTS_S = 10.0
"""Seconds after which the reason that there is then is logged too: a server that ends its
connections as it stops may come back with another port, or with TLS."""


_away: dict[tuple[int, str], list[OutageLog]] = {}
"""By process and node: the outages of its queues. The first one writes for all."""


class OutageLog:
    """The lines of `who` about one server, or about the node that a queue is on. of: the queue, if
    others are elsewhere. Times by `time.monotonic()`."""

    __slots__ = ("_again", "_known", "_log", "_node", "_of", "_said", "_since", "_who")

    def __init__(self, log: Logger, who: str, of: str = "") -> None:
        self._log = log
        self._who = f"{who}: Redis of queue {of}" if of else f"{who}: Redis"
        self._of = of
        self._node = ""
        self._known = False
        self._said = ""
        self._since = 0.0
        self._again = False

    def begins(self, error: Exception, now: float) -> None:
        """Say why. What to do stands there as long as no call has succeeded; a server that has
        answered once is at the right address, and comes back."""
        self._said, self._since, self._again = str(error), now, False
        self._node = _node_of(error) if self._of else ""
        if self._node:
            _away.setdefault((getpid(), self._node), []).append(self)
        if not self._speaks:
            return
        why = error if self._known else describe(error)
        others = f" (node {self._node}: its other queues too)" if self._node else ""
        self._log.warning("%s is gone%s: %s; waiting", self._who, others, why)

    @property
    def _speaks(self) -> bool:
        """True if no other queue of the node has written already."""
        return not self._node or _away[getpid(), self._node][0] is self

    def lasts(self, error: Exception, now: float) -> None:
        """A further try has failed."""
        lasted = now - self._since
        if self._again or lasted < LASTS_S or str(error) == self._said or not self._speaks:
            return
        self._again = True
        why = describe(error)
        self._log.warning("%s is still gone after %.0f s: %s; waiting", self._who, lasted, why)

    def known(self) -> None:
        """A call has succeeded."""
        self._known = True

    def over(self, now: float) -> None:
        """Say that it is back, or that another one has its place."""
        if self._node:
            speaks, mates = self._speaks, _away[getpid(), self._node]
            mates.remove(self)
            if not mates:
                del _away[getpid(), self._node]
            if not speaks:
                return
        self._log.warning("%s is back after %.1f s", self._who, now - self._since)


def _node_of(error: Exception) -> str:
    """The node of a cluster that an error is about; "" if it names none."""
    url = error.url if isinstance(error, ServerError) else ""
    return url.rpartition(", now ")[2] if "+cluster://" in url and ", now " in url else ""
