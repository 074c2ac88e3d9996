"""How one waits until the code of a job that was cancelled runs no more: the part that needs no
I/O."""

from __future__ import annotations

import math
from time import monotonic

from rqueue.errors import ServerError
from rqueue.model.cancellation import Cancellation
from rqueue.model.expect import expect_number
from rqueue.protocol.commands.admin import Stopping
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.result_wait import SHORTEST_WAIT_S, WAIT_SLICE_S

__all__ = ["StopWait"]


class StopWait:
    """One caller's wait, for at most `timeout` seconds (None: until it has ended). `patience`:
    seconds that a reply may take, None = for ever; a blocked command lasts well below."""

    __slots__ = ("_deadline", "_list", "_patience", "_slice", "stage")

    def __init__(
        self, keys: QueueKeys, id: str, timeout: float | None, patience: float | None
    ) -> None:
        if timeout is not None:
            expect_number("timeout", timeout, "a number of seconds, or None", least=-math.inf)
        self._list = keys.stop(id)
        self._slice = WAIT_SLICE_S if patience is None else min(WAIT_SLICE_S, patience * 0.6)
        self._deadline = math.inf if timeout is None else monotonic() + timeout
        self._patience = Patience()
        self.stage = Cancellation.NONE
        """How far it is."""

    def heard(self, found: Stopping) -> tuple[str | float, ...]:
        """The answer to a look; the command that blocks until there is reason for another one, ()
        where none is needed. Redis gives its one element to each who waits for it."""
        self.stage = Cancellation(found.stage or "none")
        left = self._deadline - monotonic()
        over = self.stage in (Cancellation.NONE, Cancellation.ENDED)
        if over or found.gone or left <= 0:
            return ()
        pause = max(SHORTEST_WAIT_S, min(left, self._slice))
        return ("BLMOVE", self._list, self._list, "LEFT", "LEFT", pause)

    def pause(self, error: ServerError) -> float:
        """Seconds until one may ask anew after a failure. Raises the server error where no time is
        left, or waiting is of no use."""
        return self._patience.pause(error, self._deadline - monotonic())
