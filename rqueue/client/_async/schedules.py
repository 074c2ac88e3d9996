"""Periodic jobs of a queue: made, changed, paused and removed at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import ConfigError, NotEncodable, UnknownSchedule
from rqueue.model.envelope import pack, too_large
from rqueue.model.expect import shown
from rqueue.model.schedule import Missed, Overlap, Timing, check_schedule
from rqueue.model.schedule_info import ScheduleInfo
from rqueue.model.terms import Terms
from rqueue.protocol.commands.read import counts
from rqueue.protocol.commands.schedules import (
    FoundSchedules,
    read_schedules,
    remove_schedule,
    run_schedule,
    set_schedule,
)
from rqueue.protocol.job_packer import Call, terms_of
from rqueue.protocol.scheduling import arefill, check_options, signatures, stored, verify
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import Options

__all__ = ["AsyncSchedules"]

TRIES = 20
"""Changes by others that one change may meet."""


class AsyncSchedules:
    """The schedules of one queue, `queue.schedules`; each has a name.

    A schedule needs no process of its own: whichever consumer waits knows when the next tick is,
    and enqueues the job, of which there is one for each tick, however many look (A-41).
    """

    def __init__(self, queue: AsyncQueueCalls) -> None:
        self._queue = queue

    async def set(
        self,
        name: str,
        task: BoundTask[..., Any] | str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        cron: str | Sequence[str] | None = None,
        every: timedelta | float | str | None = None,
        tz: str | ZoneInfo = "UTC",
        missed: Missed = "last",
        overlap: Overlap = "allow",
        jitter: timedelta | float | str = 0,
        window: timedelta | float | str = "1d",
        options: Options | None = None,
    ) -> ScheduleInfo:
        """Make a schedule, or change the one of this name; the same again changes nothing.

        task: with the options of its calls, `task.options(priority=9)`, or a task's name. cron:
        expressions, in time zone `tz`; every: an interval of at least a second instead, from now
        on. missed: what becomes of ticks that nobody looked for in time: the "last" one becomes a
        job, none does ("skip"; a minute late, or half an interval, is in time), or "all" of the
        `window` do. overlap: whether a tick becomes a job while the one before waits or runs: it
        does ("allow"), does not ("skip"), or when that has ended ("queue", one at the most).
        jitter: each job is due up to so much after its tick. A schedule that is paused stays so.
        Raises ConfigError, InvalidName, BadArguments, NotEncodable and the server errors.
        """
        timing = Timing.of(cron, every, tz, missed, overlap, jitter, window)
        request = Call(task, args, dict(kwargs or {}), options).resolve()
        check_options(request.options)
        job = self._packed(request.task, request.args, request.kwargs, request.options)
        terms = terms_of(request.options)
        wanted = ScheduleInfo(
            check_schedule(name),
            self._queue.name,
            request.task,
            timing,
            terms=terms,
            job=job,
        )

        def change(known: ScheduleInfo | None) -> ScheduleInfo:
            if known is None:
                return wanted
            new = replace(known, task=wanted.task, timing=timing, terms=terms, job=job)
            return _edited(known, new)

        return await self._change(name, change)

    async def edit(
        self,
        name: str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        cron: str | Sequence[str] | None = None,
        every: timedelta | float | str | None = None,
        tz: str | ZoneInfo | None = None,
        missed: Missed | None = None,
        overlap: Overlap | None = None,
        jitter: timedelta | float | str | None = None,
        window: timedelta | float | str | None = None,
    ) -> ScheduleInfo:
        """Change some of what a schedule says, None: as it is. Jobs that it made stay as they are.
        Raises UnknownSchedule, and as `set`."""

        def change(known: ScheduleInfo | None) -> ScheduleInfo:
            was = self._known(name, known)
            timing = was.timing.changed(cron, every, tz, missed, overlap, jitter, window)
            new = replace(self._with_arguments(was, args, kwargs), timing=timing)
            return _edited(was, new)

        return await self._change(name, change)

    async def pause(self, name: str) -> bool:
        """Enqueue nothing until `resume`; True if that is a change. What ticks until then becomes
        no job, also later. Raises UnknownSchedule."""
        return await self._switch(name, "paused")

    async def resume(self, name: str) -> bool:
        """Go on with the next tick from now; True if that is a change. Raises UnknownSchedule."""
        return await self._switch(name, "active")

    async def reset(self, name: str) -> ScheduleInfo:
        """Take back what people changed of a schedule that code declares (A-46). Raises
        UnknownSchedule, and ConfigError for one that no code declares."""

        def change(known: ScheduleInfo | None) -> ScheduleInfo:
            was = self._known(name, known)
            if not was.declared:
                raise ConfigError("name", f"no code declares {name!r}: edit or remove it")
            return replace(was.as_declared, state="active")

        return await self._change(check_schedule(name), change)

    async def run_now(self, name: str) -> AsyncJobHandle[Any]:
        """Enqueue its job now, also where it is paused or the one before runs. Its ticks are as
        they were. Where another job has its unique key, that is answered as by any enqueue. Raises
        UnknownSchedule, Forged and Unsigned, DuplicateJob where `on_conflict` says so."""
        queue, signer = self._queue, self._queue.settings.signer
        at, signed = 0, ""
        if signer is not None:
            info = await self.get(name)
            verify(signer, info)
            at, job = info.now_ms, info.job.encode()
            signed = signatures(signer, queue.name, name, info.terms, job, [at])[str(at)]
        ran = await queue._run(run_schedule(queue.keys, name, at, signed))
        if not ran.id:
            raise UnknownSchedule(name, queue.name)
        return AsyncJobHandle(queue, ran.id, created=ran.created, conflict=ran.conflict)

    async def remove(self, name: str) -> bool:
        """Remove a schedule; True if there was one. Jobs that it made stay."""
        removed = await self._queue._run(remove_schedule(self._queue.keys, check_schedule(name)))
        if not removed:
            await self._none()
        return removed

    async def get(self, name: str) -> ScheduleInfo:
        """A schedule, as it is. Raises UnknownSchedule."""
        read = await self._read(check_schedule(name))
        return self._known(name, read.found[0] if read.found else None)

    async def next(self, name: str, count: int = 5) -> list[datetime]:
        """When a schedule ticks next, in its time zone; as if it were not paused. Raises
        UnknownSchedule, ConfigError."""
        if type(count) is not int or not 1 <= count <= 1000:
            raise ConfigError("count", f"{shown(count)} is no whole number from 1 to 1000")
        info = await self.get(name)
        ticks = list(info.nexts[:count]) if info.state == "active" else []
        ticks += info.timing.after(ticks[-1] if ticks else info.now_ms, count - len(ticks))
        return [info.timing.local(at) for at in ticks[:count]]

    async def list(self) -> list[ScheduleInfo]:
        """All schedules of the queue, by name."""
        found: dict[str, ScheduleInfo] = {}
        cursor = "0"
        while True:
            page = await self._queue._run(read_schedules(self._queue.keys, cursor=cursor))
            found.update((info.name, info) for info in page.found)
            cursor = page.cursor
            if cursor == "0":
                break
        if not found:
            await self._none()
        return [found[name] for name in sorted(found)]

    async def refill(self) -> int:
        """Compute the next ticks of schedules that have few left, of how many. Workers and
        consumers do so by themselves when they renew their leases."""
        names = [info.name for info in await self.list()]
        return await arefill(self._queue._run, self._queue.keys, names, self._queue.settings.signer)

    # -- one change --------------------------------------------------------------------------------

    async def _read(self, name: str) -> FoundSchedules:
        read = await self._queue._run(read_schedules(self._queue.keys, [name]))
        if not read.found:
            await self._none()
        return read

    async def _none(self) -> None:
        """There is none: raise QueueSharded where that is because there cannot be."""
        await self._queue._run_here(counts(self._queue.keys, oldest=False))

    async def _change(self, name: str, change: Any) -> ScheduleInfo:
        queue, signer = self._queue, self._queue.settings.signer
        for _ in range(TRIES):
            read = await self._read(name)
            known: ScheduleInfo | None = read.found[0] if read.found else None
            new: ScheduleInfo = change(known)
            if known and known.same(new) and (signer is None or known.seal):
                return known
            anew = known is None or known.moved(new)
            record = stored(signer, new, new.timing, read.now, new.state, anew=anew)
            version = known.version if known else ""
            word = await queue._run(set_schedule(queue.keys, name, version, record))
            if word != "other":
                return await self.get(name)
        raise ConfigError("schedule", f"{name!r} is changed by others all the time")

    async def _switch(self, name: str, state: Any) -> bool:
        changed = False

        def change(known: ScheduleInfo | None) -> ScheduleInfo:
            nonlocal changed
            was = self._known(name, known)
            changed = was.state != state
            return replace(was, state=state)

        await self._change(check_schedule(name), change)
        return changed

    def _known(self, name: str, info: ScheduleInfo | None) -> ScheduleInfo:
        if info is None:
            raise UnknownSchedule(name, self._queue.name)
        return info

    def _with_arguments(
        self, info: ScheduleInfo, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None
    ) -> ScheduleInfo:
        if args is None and kwargs is None:
            return info
        if Terms.parse(info.terms).unique:
            raise ConfigError(
                "args",
                f"the jobs of schedule {info.name!r} are unique, by a key that its call gave them:"
                " set it anew, with the task and the other arguments",
            )
        task, had, named, opts = info.envelope
        new = pack(
            task,
            had if args is None else args,
            dict(named if kwargs is None else kwargs),
            dict(opts),
        )
        return replace(info, job=self._fits(task, new))

    def _packed(
        self, task: str, args: Sequence[Any], kwargs: dict[str, Any], options: Options
    ) -> str:
        return self._fits(task, pack(task, args, kwargs, options.to_opts()))

    def _fits(self, task: str, body: bytes) -> str:
        most = self._queue.settings.max_body
        if len(body) > most:
            raise NotEncodable("", task, too_large(len(body), most), what="arguments")
        return body.decode()


def _edited(was: ScheduleInfo, new: ScheduleInfo) -> ScheduleInfo:
    """Of one that code declares it is noted that people changed it."""
    return replace(new, edited=True) if was.code and not was.same(new) else new
