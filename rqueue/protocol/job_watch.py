"""How one watches one job: the part that needs no I/O.

Who watches looks at the job, and blocks on a stream of this job alone until its report or its end
adds an entry; then it looks again. An entry is a bell and says nothing: what a look shows is true,
and a bell that was lost costs one slice of waiting.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import monotonic
from typing import Any

from rqueue.errors import ServerError, UnknownJob
from rqueue.model.expect import expect_number
from rqueue.model.job import JobState
from rqueue.model.progress import JobUpdate, Progress
from rqueue.protocol import commands
from rqueue.protocol.commands.reports import LINES_PAGE, Watched
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.result_wait import WAIT_SLICE_S

__all__ = ["JobWatch"]


class JobWatch:
    """One watcher, for at most `timeout` seconds (None: to the job's end). `patience`: seconds that
    a reply may take, None = for ever; a blocked command lasts well below."""

    __slots__ = (
        *("_after", "_bell", "_deadline", "_id", "_keys", "_more", "_patience", "_seen", "_slice"),
        *("over", "stay"),
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
        self._bell = ""
        self._seen: JobUpdate | None = None
        self._after = 0
        self._more = False
        self.stay = commands.watch_on(keys, id)
        """The call that goes before the command that blocks."""
        self.over = False
        """Whether the job has ended, or the time is over."""

    def at(self, keys: QueueKeys) -> None:
        """The job is in this queue, a shard of the one that was asked: begin anew there."""
        self._keys = keys
        self.stay = commands.watch_on(keys, self._id)

    def goes_on_as(self, id: str) -> None:
        """The job is merged into this one: begin anew there."""
        self._id, self._bell, self._seen, self.over = id, "", None, False
        self.stay = commands.watch_on(self._keys, id)

    def look(self) -> commands.ScriptCall[Watched]:
        """The call that looks at the job."""
        return commands.watch(self._keys, self._id, self._after)

    def block(self) -> tuple[str | float, ...]:
        """The command that blocks until there is reason to look; () where there is reason now."""
        if not self._bell or self._more:
            return ()
        pause = max(1, round(1000 * min(self._slice, self._deadline - monotonic())))
        return ("XREAD", "BLOCK", pause, "STREAMS", self._keys.watch(self._id), self._bell)

    def woken(self, answer: Any) -> None:
        """The answer to that command. Raises what it was refused with."""
        if isinstance(answer, Exception):
            raise answer

    def heard(self, seen: Watched) -> JobUpdate | None:
        """What a look showed; None: nothing new. Raises UnknownJob."""
        self._bell = seen.bell
        if seen.state is JobState.UNKNOWN:
            raise UnknownJob(self._id, queue=self._keys.queue)
        self._more = len(seen.lines) == LINES_PAGE
        self.over = (seen.state.ended and not self._more) or monotonic() >= self._deadline
        if seen.lines:
            self._after = seen.lines[-1].number
        state = JobUpdate(seen.state, self._progress(seen))
        if state == self._seen and not seen.lines:
            return None
        self._seen = state
        return replace(state, lines=seen.lines)

    def _progress(self, seen: Watched) -> Progress | None:
        """How far the job is. Of one that failed the worker takes away what it reported, at once
        or later: who has seen it before says it."""
        over = seen.state.ended and seen.state is not JobState.DONE
        if seen.progress is None and over and self._seen is not None:
            return self._seen.progress
        return seen.progress

    def pause(self, error: ServerError) -> float:
        """Seconds until one may look again after a failure. Raises the server error where no time
        is left, or waiting is of no use."""
        self._bell = ""
        return self._patience.pause(error, self._deadline - monotonic())
