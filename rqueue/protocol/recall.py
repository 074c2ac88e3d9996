"""What a consumer holds, asked for page by page: after a lost reply or a lost wake-up (H-18).

A page names the jobs that the consumer holds, in the order in which it got them. The last page is
the pull itself: what that takes follows.
"""

from __future__ import annotations

from rqueue.model.job import Delivery
from rqueue.protocol.commands.settle import Pulled


class Recall:
    """The pages of one recall. Ask from `start` on, until `read` says that all is named."""

    def __init__(self) -> None:
        self.start = 0
        self._named: dict[bytes, bytes] = {}
        self._last = b""

    def read(self, pulled: Pulled) -> bool:
        """Take note of a page; True if it was the last one."""
        ids = pulled.jobs[::2]
        if self.start and (not ids or ids[0] != self._last):
            # a job before it was cancelled meanwhile: what follows moved up
            self.start = 0
            self._named.clear()
            return False
        self._named.update(zip(ids, pulled.jobs[1::2], strict=True))
        if not pulled.behind or pulled.behind in self._named:
            return True
        # the next page begins with the last one of this page, to show that nothing moved
        self.start += len(ids) - 1
        self._last = ids[-1]
        return False

    @property
    def jobs(self) -> list[bytes]:
        """[id, value, ...] of all that is held, in the order in which it was taken."""
        return [part for job in self._named.items() if job[1] for part in job]


class Recovered(Delivery):
    """A job that its consumer was given before, and had not settled when it recovered (Q-57)."""

    __slots__ = ()

    @property
    def redelivered(self) -> bool:
        """It was: nobody but the consumer knows what became of it."""
        return True
