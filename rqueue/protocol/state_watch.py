"""How one listens to what becomes of a job: the part that needs no I/O.

What became of a job, or of an attempt at it, is a row of its queue's history. A listener remembers
the last entry, then looks at the job, then blocks until there is an entry behind that one: what
happens between two of these steps ends the wait at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic
from typing import Any

from rqueue.errors import ServerError, UnknownJob
from rqueue.model.expect import expect_number
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.replies import raw_text
from rqueue.protocol.result_wait import WAIT_SLICE_S, Awaited, await_result, read_state

__all__ = ["StateWatch"]

BEGIN = "0-0"
"""Before the first entry of a stream."""

PAGE = 1000
"""Entries that one look passes over: they may be of other jobs."""


class StateWatch:
    """One listener's way through a job's states, for at most `timeout` seconds (None: to its end).
    `patience`: seconds that a reply may take, None = for ever; a blocked command lasts well
    below."""

    __slots__ = (
        *("_after", "_deadline", "_id", "_keys", "_looked", "_patience", "_seen", "_slice"),
        "over",
    )

    def __init__(
        self, keys: QueueKeys, id: str, timeout: float | None, patience: float | None
    ) -> None:
        if timeout is not None:
            expect_number("timeout", timeout, "a number of seconds, or None", least=-math.inf)
        self._keys = keys
        self._id = id
        self._slice = WAIT_SLICE_S if patience is None else min(WAIT_SLICE_S, patience * 0.6)
        self._deadline = math.inf if timeout is None else monotonic() + timeout
        self._patience = Patience()
        self._after = ""
        self._looked = False
        self._seen: JobState | None = None
        self.over = False
        """Whether the job has ended, or the time is over."""

    def at(self, keys: QueueKeys) -> None:
        """The job is in this queue, a shard of the one that was asked: begin anew there."""
        self._keys = keys
        self._after = ""

    def goes_on_as(self, id: str) -> None:
        """The job is merged into this one: begin anew there."""
        self._id, self._after, self._seen, self.over = id, "", None, False

    def ask(self) -> tuple[commands.ScriptCall[Awaited], tuple[str | float, ...]]:
        """The call that looks at the job, and what goes with it: at first a question for the last
        entry, then nothing, so that the answer comes at once, then a wait for the next entry."""
        call = await_result(self._keys, self._id, wait=False)
        if not self._after:
            return call, ("XREVRANGE", self._keys.history, "+", "-", "COUNT", 1)
        if not self._looked:
            return call, ()
        pause = max(1, round(1000 * min(self._slice, self._deadline - monotonic())))
        stream = ("STREAMS", self._keys.history, self._after)
        return call, ("XREAD", "COUNT", PAGE, "BLOCK", pause, *stream)

    def went_on(self, entries: Any) -> None:
        """The answer to the command that went with the call. Raises what it was refused with."""
        if isinstance(entries, Exception):
            raise entries
        self._looked = False
        if not self._after:
            self._after = raw_text(entries[0][0]) if entries else BEGIN
        elif entries:
            ((_, news),) = entries.items() if isinstance(entries, Mapping) else entries
            self._after = raw_text(news[-1][0])

    def heard(self, seen: Awaited) -> JobState | None:
        """The state that the job is in by now; None: the same one as before. Raises
        UnknownJob."""
        self._looked = True
        state = read_state(seen)
        if state is JobState.UNKNOWN:
            raise UnknownJob(self._id, queue=self._keys.queue)
        self.over = state.ended or monotonic() >= self._deadline
        if state is self._seen:
            return None
        self._seen = state
        return state

    def pause(self, error: ServerError) -> float:
        """Seconds until one may ask anew after a failure. Raises the server error where no time is
        left, or waiting is of no use."""
        return self._patience.pause(error, self._deadline - monotonic())
