"""Which of the jobs that wait, or are dead, a call of the administration means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence  # async

# sync: from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from rqueue.client._async.queue_steering import PAGE, AsyncQueueSteering
from rqueue.errors import ConfigError, Undecodable
from rqueue.model.expect import expect, shown
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.model.job_count import JobCount
from rqueue.model.job_filter import JobFilter
from rqueue.protocol import commands
from rqueue.protocol.moving import Listed
from rqueue.protocol.result_wait import await_result

__all__ = ["AsyncJobSelection"]

Step = Callable[[Sequence[Listed]], Awaitable[JobCount]]  # async
# sync: Step = Callable[[Sequence[Listed]], JobCount]

WINDOW = 5000
"""Jobs that are chosen before the first of them leaves."""


class AsyncJobSelection(AsyncQueueSteering):
    """The jobs of a queue by name, or all that fit a filter, in their order."""

    async def _each_window(
        self,
        which: JobFilter,
        limit: int | None,
        step: Step,
        *,
        dead: bool = False,
    ) -> JobCount:
        """Do this with all that fit, some thousands at a time: what leaves lets others of its group
        come to the fore, so each look begins at the head."""
        most, done = limit_of(limit), JobCount()
        tried: set[str] = set()
        until = (await self._run(commands.counts(self.keys, oldest=False))).now
        while done < most:
            window: list[Listed] = []
            async for listed in self._listed(which, dead=dead, until=until):
                if listed.job.id not in tried:
                    window.append(listed)
                if len(window) >= min(WINDOW, most - done):
                    break
            if not window:
                break
            moved = await step(window)
            done += moved
            if moved < len(window):
                tried.update(listed.job.id for listed in window)
        return done

    async def _listed(
        self, which: JobFilter, *, dead: bool = False, until: int | None = None
    ) -> AsyncIterator[Listed]:
        """The jobs that wait and fit, in their order, then the scheduled ones by due time; or the
        dead letters. until: none that was enqueued (or died) after it, ms."""
        expect("which", which, JobFilter, "a JobFilter")
        if not dead:
            async for jobs in self._ready():
                for job in jobs:
                    if which.fits(job) and _before(job, until):
                        yield Listed(job)
        async for listed, score in self._in_set("dead" if dead else "scheduled"):
            if dead and until is not None and score > until:
                return
            if which.fits(listed.job) and (dead or _before(listed.job, until)):
                yield listed

    async def _ready(self) -> AsyncIterator[list[Delivery]]:
        """Pages of ready jobs in their order, then of those behind others of their groups."""
        cursor = ""
        while True:
            page = await self._run(commands.browse(self.keys, cursor, PAGE))
            yield page.jobs
            if not page.jobs or page.cursor == cursor:
                return
            cursor = page.cursor

    async def _in_set(
        self, name: Literal["scheduled", "dead"]
    ) -> AsyncIterator[tuple[Listed, float]]:
        place = "-inf", ""
        while True:
            page = await self._run(commands.browse_set(self.keys, name, place, PAGE))
            for entry in page.entries:
                due = int(entry.score) if name == "scheduled" else 0
                yield Listed(entry.job, due), entry.score
            if not page.more:
                return
            place = page.after

    async def _named(
        self, ids: Sequence[str], *, dead: bool = True
    ) -> tuple[list[Listed], dict[str, str]]:
        """These jobs, as far as they wait, or are dead where `dead` says so; and why the others are
        none of them, by id."""
        found: list[Listed] = []
        others: dict[str, str] = {}
        for id_ in dict.fromkeys(map(check_id, ids)):
            look = await self._run(commands.show(self.keys, id_))
            job = Delivery(id_, look.value)
            if look.state in ("ready", "blocked") or (dead and look.state == "dead"):
                found.append(Listed(job))
            elif look.state == "scheduled":
                seen = await self._run(await_result(self.keys, id_, wait=False))
                found.append(Listed(job, seen.due_ms))
            else:
                others[id_] = look.state
        return found, others


def limit_of(limit: int | None) -> float:
    """How many at the most. Raises ConfigError."""
    if limit is None:
        return float("inf")
    if type(limit) is not int or limit < 0:
        raise ConfigError("limit", f"{shown(limit)} is no whole number from 0 on, or None")
    return limit


def _before(job: Delivery, until: int | None) -> bool:
    try:
        return until is None or job.header.enqueued_ms <= until
    except Undecodable:
        return True
