"""What people do with jobs that wait: another priority, the front, now instead of later."""

from __future__ import annotations

from operator import itemgetter
from typing import Literal

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.groups import AsyncGroups
from rqueue.client._async.limits import AsyncLimits
from rqueue.client._async.shares import AsyncShares
from rqueue.errors import ConfigError, JobBlocked
from rqueue.model.expect import expect, shown
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.model.job_count import JobCount
from rqueue.model.job_filter import ANY, JobFilter
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import REORDER_MAX, SLICE
from rqueue.protocol.paging import entries

__all__ = ["AsyncQueueSteering"]

READ_AGAIN = 3
"""How often a job is read that changes meanwhile."""


class AsyncQueueSteering(AsyncEnqueuing):
    """The administration of waiting jobs."""

    @property
    def groups(self) -> AsyncGroups:
        """Sticky groups: whose one is, and how it is freed."""
        return AsyncGroups(self)

    @property
    def limits(self) -> AsyncLimits:
        """What the limits that jobs name allow, and how far they are used."""
        return AsyncLimits(self)

    @property
    def shares(self) -> AsyncShares:
        """Which shares have ready jobs, and what weights they have."""
        return AsyncShares(self)

    async def set_priority(self, id: str, priority: int) -> JobCount:
        """Give a job that waits another priority (A-38): it goes to the tail of that level, or
        waits for its due time as before. 1 if it has this priority now; else 0, and `stayed` says
        why: a consumer holds it, it has ended (`JobCount`).

        Of a group only the first job can be changed: the others cannot pass it. Raises JobBlocked,
        which names that one, ConfigError, and Forged for a job whose signature does not hold.
        """
        if type(priority) is not int or not 0 <= priority <= 9:
            raise ConfigError("priority", f"{shown(priority)} is no whole number from 0 to 9")
        was = ""
        for _ in range(READ_AGAIN):
            before = fresh = b""
            if self._packer.signs:
                shown_ = await self._run(commands.show(self.keys, check_id(id)))
                if shown_.value:
                    job = Delivery(id, shown_.value)
                    before = job.body
                    fresh = self._packer.signed_for_priority(job, priority)
            (was,) = await self._reorder(priority, [(check_id(id), before, fresh)])
            if was != "other":
                break
        return JobCount.of([(id, was)], ["changed", "same"])

    async def move_to_front(self, *ids: str) -> JobCount:
        """Bring jobs that wait before all others of their priority, the first one named first of
        all; returns how many. Scheduled and held jobs stay where they are (`promote` makes a
        scheduled one ready), and `stayed` names them, with the reason (`JobCount`). Raises
        JobBlocked for one that waits behind others of its group: those named after it have moved,
        it has not."""
        moved = JobCount()
        # the last ones first: what is named before them comes before them
        for end in range(len(ids), 0, -REORDER_MAX):
            some = ids[max(0, end - REORDER_MAX) : end]
            answers = await self._reorder("front", [(check_id(id_), b"", b"") for id_ in some])
            moved += JobCount.of(zip(some, answers, strict=True), ["changed"])
        return moved

    async def _reorder(
        self, to: int | Literal["front"], jobs: list[tuple[str, bytes, bytes]]
    ) -> list[str]:
        answers = await self._run(commands.reorder(self.keys, to, jobs))
        for (id_, *_), was in zip(jobs, answers, strict=True):
            if was.startswith("blocked"):
                raise JobBlocked(id_, was.partition(" ")[2], queue=self.name)
        return answers

    async def promote(self, *ids: str) -> JobCount:
        """Make scheduled jobs ready now, at the head of their levels (A-09); returns how many.
        `stayed` says of the others why they stayed as they are (`JobCount`).

        Signed jobs are signed anew, for now. Raises Forged for one whose signature does not hold.
        """
        waiting: list[tuple[int, str]] = []
        looks: list[tuple[str, str]] = []
        for id_ in dict.fromkeys(map(check_id, ids)):
            shown_ = await self._run_here(commands.show(self.keys, id_))
            state = shown_.state
            if state == "scheduled":
                job = Delivery(id_, shown_.value)
                if (state := await self._sign_for_now(job)) == "scheduled":
                    waiting.append((job.due_ms, id_))
            looks.append((id_, state))
        waiting.sort(key=itemgetter(0))
        done = await self._promote([id_ for _, id_ in waiting])
        return JobCount(done, JobCount.of(looks, ["scheduled"]).stayed)

    async def promote_all(self, which: JobFilter = ANY) -> int:
        """Make all scheduled jobs that fit ready now, in the order of their due times (A-09);
        returns how many. What is scheduled meanwhile may be left out."""
        expect("which", which, JobFilter, "a JobFilter")
        waiting: list[str] = []
        async for page in self._pages(entries(self.keys, "scheduled")):
            for job, _, _ in page.entries:
                if which.fits(job) and await self._sign_for_now(job) == "scheduled":
                    waiting.append(job.id)
        return await self._promote(waiting)

    async def _promote(self, ids: list[str]) -> int:
        """Of jobs by their due times, whose signatures let them run now; returns how many became
        ready."""
        done = 0
        for start in range(0, len(ids), SLICE):
            some = ids[start : start + SLICE]
            left = len(ids) - start - len(some)
            done += await self._run(commands.promote(self.keys, some, others=left))
        return done

    async def _sign_for_now(self, job: Delivery) -> str:
        """Sign a scheduled job anew, where its signature would not let it run now. Returns its
        state: scheduled, or what became of it meanwhile; `other` where it changes all the time."""
        for _ in range(READ_AGAIN):
            fresh = self._packer.signed_for_now(job)
            if not fresh or await self._run(commands.resign(self.keys, job.id, job.body, fresh)):
                return "scheduled"
            shown_ = await self._run(commands.show(self.keys, job.id))
            if shown_.state != "scheduled":
                return shown_.state
            job = Delivery(job.id, shown_.value)
        return "other"
