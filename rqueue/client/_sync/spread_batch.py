# Generated from rqueue/client/_async/spread_batch.py (`make generate`): do not edit.
"""Jobs that are enqueued together into the shards of a queue, and how far that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.client._sync.earlier_shards import Asked
from rqueue.client._sync.job_handle import JobHandle
from rqueue.model.confirmation import Confirmation
from rqueue.protocol.commands.enqueue import Accepted, Answered

__all__ = ["SpreadBatch"]


class SpreadBatch:
    """Jobs of several shards: one step for each. confirm: what confirms them. max_wait: seconds
    that a step may wait for room (None: the setting)."""

    def __init__(
        self, jobs: Sequence[Asked], confirm: Confirmation | None, max_wait: float | None
    ) -> None:
        self.jobs = list(jobs)
        self.confirm = confirm
        self.max_wait = max_wait
        self.handles: dict[int, JobHandle[Any]] = {}
        """Of those that are stored, or known, by their places."""
        self.refused: dict[int, Exception] = {}
        """Why jobs are not to be sent again, by their places."""
        self.sent: list[Asked] = []
        """Those of the step under way."""

    @property
    def left(self) -> list[Asked]:
        """Those that are to be sent still."""
        return [
            job
            for job in self.jobs
            if job.place not in self.handles and job.place not in self.refused
        ]

    def refuse(self, error: Exception) -> None:
        """The step under way cannot be done, now or later."""
        self.refused |= {job.place: error for job in self.sent if job.place not in self.handles}

    def doubt(self) -> None:
        """Whether the step under way was done is not known: what a shard knows by then is no job of
        another process that has made the same id."""
        doubtful = {job.place for job in self.sent}
        self.jobs = [job._replace(own=False) if job.place in doubtful else job for job in self.jobs]

    def accepted(self) -> Accepted:
        """What came of all, as one queue would answer; without the time of a server."""
        known = [job.place for job in self.jobs if not self.handles[job.place].created]
        answered = [
            Answered(place, its.id, its.conflict)
            for place in known
            if (its := self.handles[place]).conflict
        ]
        return Accepted(
            0,
            len(self.jobs) - len(known),
            tuple(place for place in known if not self.handles[place].conflict),
            "",
            answered=tuple(answered),
        )
