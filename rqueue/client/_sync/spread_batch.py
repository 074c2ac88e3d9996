# Generated from rqueue/client/_async/spread_batch.py (`make generate`): do not edit.
"""Jobs that are enqueued together into the shards of a queue, and how far that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.client._sync.earlier_shards import Asked
from rqueue.client._sync.job_handle import JobHandle
from rqueue.model.confirmation import Confirmation
from rqueue.protocol.commands.enqueue import Accepted, Answered, Put

__all__ = ["SpreadBatch"]


class SpreadBatch:
    """Jobs of several shards: one step for each. A job is named by its place among them.

    jobs: neither signed nor with their keys, which is made of them when their shard is known; and
    of each whether its id was made here. keys: what says where each goes; "": nothing. confirm:
    what confirms them. max_wait: seconds that a step may wait for room (None: the setting).
    """

    def __init__(
        self,
        jobs: list[tuple[Put, bool]],
        keys: Sequence[str],
        confirm: Confirmation | None,
        max_wait: float | None,
    ) -> None:
        self.jobs = jobs
        self.keys = keys
        self.confirm = confirm
        self.max_wait = max_wait
        self.handles: dict[int, JobHandle[Any]] = {}
        """Of those that are stored, or known."""
        self.refused: dict[int, Exception] = {}
        """Why jobs are not to be sent again."""
        self.failed: Sequence[int] = ()
        """Those of the step that has failed; where it is not known whether steps were done, of all
        these."""

    @property
    def left(self) -> Sequence[int]:
        """Those that are to be sent still."""
        places = range(len(self.jobs))
        if not self.handles and not self.refused:
            return places
        return [p for p in places if p not in self.handles and p not in self.refused]

    def asked(self, places: Sequence[int]) -> list[Asked]:
        """Those of these jobs for which earlier shards are asked: they may know their ids, or
        others with their unique keys."""
        asked = []
        for place in places:
            put, own = self.jobs[place]
            if not own or put.unique:
                asked.append(Asked(place, put, own, self.keys[place]))
        return asked

    def store(self, places: Sequence[int], stored: Sequence[JobHandle[Any]]) -> None:
        """A step is done; these are the handles of its jobs."""
        self.handles.update(zip(places, stored, strict=True))

    def refuse(self, error: Exception) -> None:
        """The step that has failed cannot be done, now or later."""
        self.refused |= {place: error for place in self.failed if place not in self.handles}

    def doubt(self, places: Sequence[int]) -> None:
        """Whether the step of these jobs was done is not known: what a shard knows by then is no
        job of another process that has made the same id."""
        for place in places:
            self.jobs[place] = self.jobs[place][0], False

    def accepted(self) -> Accepted:
        """What came of all, as one queue would answer; without the time of a server."""
        places = range(len(self.jobs))
        known = [place for place in places if not self.handles[place].created]
        answered = [
            Answered(place, its.id, its.conflict)
            for place in known
            if (its := self.handles[place]).conflict
        ]
        return Accepted(
            0,
            len(places) - len(known),
            tuple(place for place in known if not self.handles[place].conflict),
            "",
            answered=tuple(answered),
        )
