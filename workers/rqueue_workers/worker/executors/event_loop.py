"""Async jobs on an event loop, which has a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from rqueue.errors import SoftTimeLimit
from rqueue.logs import logger
from rqueue.model.job import parse_value
from rqueue.tasks.context import current
from rqueue_workers.worker.executors.base import Executor, Job, fail_hard

log = logger("rqueue.worker")

T = TypeVar("T")

LIMIT_GRACE_S = 1.0
"""Seconds that a job has to end after its hard limit cancelled it; then the supervisor kills the
process."""


class EventLoopExecutor(Executor):
    """`slots` tasks at once. A limit cancels the task; the job has then failed of `SoftTimeLimit`,
    whatever it makes of the cancellation."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._free = list(range(self.slots - 1, -1, -1))
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._admitting = False
        self._taking = False
        self._closed = False
        self._context = copy_context()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="rqueue-loop", daemon=True)
        self._thread.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        """Give the loop jobs."""
        self.todo.extend(jobs)
        if not self._admitting and self._free:
            self._admitting = True
            self._loop.call_soon_threadsafe(self._admit)

    @property
    def beginning(self) -> bool:
        """Whether the loop has taken a job that it does not run yet."""
        return self._taking or bool(self._tasks)

    def revoke(self, job: Job) -> None:
        """Cancel the task of a job that was cancelled, once: what it does then is to come to its
        end."""
        first = job.id in job.subscription.cancelled
        super().revoke(job)
        if first:
            self._loop.call_soon_threadsafe(self._cancel, job)
        elif job.force:
            self._interrupted(job)

    def _interrupt(self, job: Job) -> None:
        """Its task is cancelled in any case."""

    def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something of the application's beside the jobs, to its end. From the main thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Stop the loop; what still runs is left where it is."""
        self._closed = True
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)

    # -- on the loop -------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closed:
            try:
                self._loop.run_forever()  # where a job stopped it: the others are to go on
            except (SystemExit, KeyboardInterrupt) as error:
                # of a task or callback that a job left behind: these pass through the loop, and
                # nobody else may end with it
                said = "what a job started on the event loop raised %s; the loop goes on"
                log.error(said, type(error).__name__, exc_info=error)
            except BaseException:  # its selector is closed: without the loop no job would end
                fail_hard(self._page)

    def strip(self) -> None:
        """In a child that a job forked: nothing of this loop goes on in it. The child ends when it
        first waits."""
        self.todo.clear()
        ready: Any = getattr(self._loop, "_ready", None)  # not there in other loops
        if ready is not None:
            ready.clear()
        self._loop.call_soon(self._forks.leave)

    def _admit(self) -> None:
        self._admitting = False
        self._taking = True
        free, todo = self._free, self.todo
        while free:
            try:
                job = todo.popleft()
            except IndexError:
                break
            if not self._admitted(job):
                break
            slot = free.pop()
            # not by the loop's factory, which is the application's: it may raise, or run at once
            # and not in this context: it may be that of the job whose end makes room
            work = asyncio.Task(
                self._work(slot, job), loop=self._loop, context=self._context.copy()
            )
            self._tasks[slot] = work
            work.add_done_callback(partial(self._worked, slot, job))
        self._taking = False

    def _worked(self, slot: int, job: Job, work: asyncio.Task[None]) -> None:
        """A slot's task is over. One that another job cancelled before it began never ran."""
        if self._tasks.get(slot) is work:
            self._taking = True
            self._tasks.pop(slot)
            self._free.append(slot)
            self.todo.appendleft(job)
            self._admit()

    def _cancel(self, job: Job) -> None:
        for slot, running in list(self.running.items()):
            if running is job and slot in self._tasks:
                self._tasks[slot].cancel()
                if job.force:
                    self._interrupted(job)

    async def _work(self, slot: int, job: Job) -> None:
        try:
            await self._run_job(slot, job)
        except BaseException:
            fail_hard(self._page)

    async def _run_job(self, slot: int, job: Job) -> None:
        error: BaseException | None = None
        result: Any = None
        if not self._begins(job):  # the loop may have been blocked since it was admitted
            self._tasks.pop(slot, None)
            self._free.append(slot)
            self._go_on()
            return
        current.set(self._begin(slot, job, LIMIT_GRACE_S))
        plan = job.plan
        begins = not job.cancelled
        try:
            if begins and plan.early:
                begins = False
                begins = await self._acked(job)
            if begins and (plan.soft_time_limit or plan.time_limit):
                result = await _limited(job)
            elif begins:
                result = await plan.function(*job.args, **job.kwargs)
        except BaseException as raised:
            error = raised
        if self._forks.child:
            self._forks.leave(error)
        self._tasks.pop(slot, None)
        if error is not None and job.subscription.steps.behind and not job.cancelled:
            await _caught_up(job)
        self._free.append(slot)
        if begins:
            self._end(slot, job, result, error)
        else:
            self._leave_out(slot, job)
        self._go_on()

    def _go_on(self) -> None:
        """Fill the slots that are free."""
        if self.todo and not self._admitting:
            # in this turn of the loop already: the next job must not wait for the dispatcher
            self._admit()

    async def _acked(self, job: Job) -> bool:
        answer: asyncio.Future[bool] = self._loop.create_future()

        def take(acked: bool) -> None:
            if not answer.done():
                answer.set_result(acked)

        def answered(acked: bool) -> None:
            self._loop.call_soon_threadsafe(take, acked)

        self._ack_early(job, answered)
        return await answer


async def _caught_up(job: Job) -> None:
    """Keep the positions of a failed job's loops while the event loop goes on. A cancellation that
    the job has left behind for itself changes nothing."""
    steps, deliveries = job.subscription.steps, parse_value(job.value)[0].deliveries
    with suppress(asyncio.CancelledError):
        await asyncio.shield(asyncio.to_thread(steps.catch_up, job.id.decode(), deliveries))


async def _limited(job: Job) -> Any:
    plan = job.plan
    seconds = plan.soft_time_limit or plan.time_limit
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await plan.function(*job.args, **job.kwargs)
    except TimeoutError as error:
        if limit.expired():
            raise SoftTimeLimit(plan.name, seconds) from error
        raise


def _new_loop() -> asyncio.AbstractEventLoop:
    with suppress(ImportError):
        import uvloop  # type: ignore[import-not-found,unused-ignore]

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.new_event_loop()
