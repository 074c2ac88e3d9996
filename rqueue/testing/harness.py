"""A program's queues in the test itself: no server, no worker, no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from rqueue.client import default_queues
from rqueue.client._sync.queue import Queue
from rqueue.errors import LifecycleError
from rqueue.inspector.jobs import all_jobs
from rqueue.model.expect import expect_number
from rqueue.model.ids import new_id
from rqueue.model.job import Delivery, JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.locks import new_lock
from rqueue.model.times import parse_duration, parse_moment, parse_when
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.context import JobContext
from rqueue.tasks.steps import JobSteps
from rqueue.testing.due_times import has_consumers, has_upkeep, has_work, next_due, queues_in
from rqueue.testing.expectations import Expected, When, line_of, listed
from rqueue.testing.one_thread_worker import Drained, OneThreadWorker, Ran, Steps
from rqueue.testing.replaced_server import replaced_server
from rqueue.testing.travelling import TRAVELLED, too_many
from rqueue.transport import stand_in
from rqueue.transport.connection import Connection
from rqueue.transport.memory.clients import open_memory_client
from rqueue.transport.memory.server import MemoryServer

__all__ = ["Harness", "in_memory"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

WAITING = ("ready", "blocked", "scheduled", "parked", "deferred", "held")
"""States of jobs that are enqueued and have not ended."""

ROUNDS = 100_000
"""Jobs that one drain runs at the most: beyond them a job enqueues itself again and again."""


class _ForgetfulKeeper:
    """Of a job that no queue has: its steps and loops run, and nothing of them is kept."""

    def __init__(self) -> None:
        self.behind: WeakValueDictionary[str, JobSteps] = WeakValueDictionary()

    def keep_steps(self, id: str, deliveries: int, text: str) -> None:
        """Keep nothing."""

    async def akeep_steps(self, id: str, deliveries: int, text: str) -> None:
        """Keep nothing."""


class Harness:
    """The queues of this process while a test runs: in memory, on a clock that stands still.

    Whatever the program enqueues, in whatever queue and thread, is here. `drain` runs it, in the
    thread that calls it; `travel` moves the clock. inline: jobs run where they are enqueued.
    """

    def __init__(self, name: str, server: MemoryServer, *, inline: bool = False) -> None:
        self._server = server
        self._client = open_memory_client(name)
        self._turn = new_lock()
        self._running = False
        self._worker: OneThreadWorker | None = None
        self.ran: list[Ran] = []
        """The attempts that have run, in their order."""
        server.before_wait = self._waits
        if inline:
            stand_in.behind_call = self._run_inline

    # -- the time ----------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The time of all queues, in UTC: that of the test's beginning until it is moved."""
        return datetime.fromtimestamp(self._server.clock.now_us / 1e6, UTC)

    def travel(
        self, to: When, *, run: bool = True, raises: bool = True, most: int = TRAVELLED
    ) -> Drained:
        """Move the clock on by a duration ("2h", seconds, a timedelta), or to an aware datetime,
        and run what becomes due on the way, each at its time: scheduled jobs, retries, periodic
        jobs; what has expired ends. As if a worker were there all the time; run=False: as if there
        were none, so that a later `drain` finds what is due then. raises: as for `drain`. most: how
        many jobs may run on the way: two days of a job every two seconds are 86,400 of them. Raises
        ConfigError, and LifecycleError where there are more: the clock stays where it is then."""
        expect_number("most", most, "a number of jobs", least=1, whole=True)
        return self._done(self._travelling(self._target_ms(to), run, raises, most))

    async def atravel(
        self, to: When, *, run: bool = True, raises: bool = True, most: int = TRAVELLED
    ) -> Drained:
        """`travel` for tests that run on an event loop: async jobs run on it too."""
        expect_number("most", most, "a number of jobs", least=1, whole=True)
        return await self._adone(self._travelling(self._target_ms(to), run, raises, most))

    def _target_ms(self, to: When) -> int:
        now_ms = self._now_ms
        if isinstance(to, datetime):
            return parse_when(to, "travel").at_ms or now_ms
        return now_ms + round(parse_duration(to, "travel") * 1000)

    def _travelling(self, target_ms: int, run: bool, raises: bool, most: int) -> Steps[Drained]:
        clock, began_ms = self._server.clock, self._now_ms
        drained, worker = Drained(), self._own_worker

        def drain() -> Steps[None]:
            if not (yield from self._draining(drained, raises, most)):
                moved_ms = self._now_ms - began_ms
                raise LifecycleError(too_many(drained, moved_ms, target_ms - began_ms))

        worker.declare()
        try:
            while run:
                yield from drain()
                due_ms = next_due(self._server.db, self._queues(), self._now_ms)
                if due_ms is None or due_ms > target_ms:
                    break
                clock.stop(due_ms * 1000)
            clock.stop(max(clock.now_us, target_ms * 1000))
            if run:
                yield from drain()
        finally:
            worker.leave()
        return drained

    # -- what is enqueued --------------------------------------------------------------------------

    def enqueued(
        self, task: BoundTask[..., Any] | str | None = None, queue: str | None = None
    ) -> list[JobInfo]:
        """The jobs that wait, of all queues or one, of all tasks or one, in the order in which they
        came: what they call (`task`, `args`, `kwargs`), `queue`, `state`, `due_ms`, and all else
        that `JobInfo` has. A job that has run is none any more."""
        name = task if isinstance(task, str) or task is None else task.name
        found = [
            job
            for keys in self._queues()
            if queue is None or keys.queue == queue
            for state in WAITING
            for job in all_jobs(self._client, keys, state)
            if name is None or job.task == name
        ]
        return sorted(found, key=lambda job: (job.enqueued_ms, job.queue, job.position))

    def assert_enqueued(
        self,
        task: BoundTask[..., Any] | str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        at: When | None = None,
        in_: When | None = None,
        count: int | None = None,
    ) -> JobInfo:
        """Assert that a call of this task waits, and return it; the last one of several.

        args, kwargs: its arguments, by place or by name as one likes. queue: where. at: when it is
        due, an aware datetime; in_: how long from now ("2h", seconds, a timedelta), both within a
        second. count: that there are so many of these. What is not said may be anything. Raises
        AssertionError, which lists what is enqueued, and ConfigError.
        """
        expected = Expected(task, args, kwargs, queue, at, in_, self._now_ms)
        jobs = self.enqueued()
        found = [job for job in jobs if expected.fits(job)]
        if count is not None and len(found) != count:
            raise AssertionError(
                f"{expected.words()} is enqueued {len(found)} times, not {count}; {listed(jobs)}"
            )
        if not found and count is None:
            raise AssertionError(f"{expected.words()} is not enqueued; {listed(jobs)}")
        return found[-1] if found else JobInfo("", "", JobState.UNKNOWN)

    def assert_not_enqueued(
        self,
        task: BoundTask[..., Any] | str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        at: When | None = None,
        in_: When | None = None,
    ) -> None:
        """Assert that no such call waits; see `assert_enqueued`."""
        expected = Expected(task, args, kwargs, queue, at, in_, self._now_ms)
        for job in self.enqueued():
            if expected.fits(job):
                raise AssertionError(f"{expected.words()} is enqueued: {line_of(job)}")

    @property
    def _now_ms(self) -> int:
        return self._server.clock.now_us // 1000

    # -- running it --------------------------------------------------------------------------------

    def drain(self, *, raises: bool = True) -> Drained:
        """Run the jobs that are ready, and those that they enqueue, until none is; in the queues'
        own order, one queue after the other.

        What a job raises is raised here, as it was, once the queue knows of it: the job is to be
        tried again, or dead, as on a worker. raises=False: the others go on, and `failures` of what
        is returned has them.
        """
        return self._done(self._drained(raises))

    async def adrain(self, *, raises: bool = True) -> Drained:
        """`drain` for tests that run on an event loop: async jobs run on it too."""
        return await self._adone(self._drained(raises))

    def run_job(self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a task as a worker would, with middleware, dependencies, arguments as the task gets
        them and `current_job()`, and return its result; no queue has the job. Raises what the task
        raises, and what an enqueue would."""
        return self.run_attempt(1, task, *args, **kwargs)

    def run_attempt(
        self, attempt: int, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """`run_job` as the attempt of this number, from 1."""
        result: R = self._done(self._calling(task, args, kwargs, attempt))
        return result

    async def arun_job(self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """`run_job` for tests that run on an event loop."""
        return await self.arun_attempt(1, task, *args, **kwargs)

    async def arun_attempt(
        self, attempt: int, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """`run_attempt` for tests that run on an event loop."""
        result: R = await self._adone(self._calling(task, args, kwargs, attempt))
        return result

    def _calling(
        self, task: BoundTask[..., Any], args: Any, kwargs: Any, attempt: int
    ) -> Steps[Any]:
        request = task.request(task.defaults, args, kwargs, task.queue)
        queue = Queue(task.queue, redis=self._client, settings=self._own_worker.settings)
        packed = queue._packer.pack(request._replace(options=task.defaults.merged(id=new_id())))
        now_ms = self._now_ms
        head = f"1,{now_ms},4,{attempt - 1},{attempt - 1},0,0;".encode()
        delivery = Delivery(packed.id.encode(), head + packed.body)
        envelope = queue.envelope(delivery)
        context = JobContext(
            delivery,
            task.name,
            task.queue,
            envelope.opts,
            now_ms,
            "test",
            keeper=_ForgetfulKeeper(),
        )
        result = yield from self._own_worker.call(context, envelope.args, dict(envelope.kwargs))
        return result

    def _drained(self, raises: bool) -> Steps[Drained]:
        drained = Drained()
        try:
            if not (yield from self._draining(drained, raises, ROUNDS)):
                raise LifecycleError(
                    f"{drained.ran:,} jobs ran and there are more: do they enqueue each other?"
                )
        finally:
            self._own_worker.leave()
        return drained

    def _draining(self, drained: Drained, raises: bool, most: int) -> Steps[bool]:
        """Whether all that is ready ran; False where that would be more jobs than `most`."""
        worker = self._own_worker
        again = True
        while again:
            again = False
            for keys in self._queues():
                if not self._has_work(keys):
                    continue
                before = len(drained.jobs)
                work = self._work(keys, drained, most)
                again |= yield from worker.run_queue(keys, drained, raises, work)
                if has_upkeep(self._server.db, keys, self._now_ms):
                    worker.upkeep(keys)
                self.ran += drained.jobs[before:]
                if raises:
                    _raise_first(drained.jobs[before:])
            if drained.ran >= most and any(map(self._has_work, self._queues())):
                return False
        return True

    def _has_work(self, keys: QueueKeys) -> bool:
        return has_work(self._server.db, keys, self._now_ms)

    def _work(self, keys: QueueKeys, drained: Drained, most: int) -> Callable[[], bool]:
        """Whether there is work in a queue, and so many jobs have not run yet."""
        return lambda: drained.ran < most and self._has_work(keys)

    # -- inside ------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what the application began around its jobs (its shutdown), and leave the queues."""
        if self._worker is not None:
            self._worker.close()

    def _run_inline(self) -> None:
        if not self._running:
            self.drain()

    def _waits(self, words: Sequence[bytes]) -> None:
        """A client is about to block. Raises LifecycleError where it waits for a result, and nobody
        is there who runs jobs."""
        if words[0] == b"BLMOVE" and not has_consumers(self._server.db):
            raise LifecycleError(
                "nobody runs jobs in this test, so the result would never be there: call drain() of"
                " the harness first"
            )

    def _queues(self) -> list[QueueKeys]:
        return queues_in(self._server.db)

    @property
    def _own_worker(self) -> OneThreadWorker:
        settings = default_queues.queue().settings
        if self._worker is None or self._worker.settings != settings:
            if self._worker is not None:
                self._worker.close()
            self._worker = OneThreadWorker(Connection(self._client), settings)
        return self._worker

    def _done(self, steps: Steps[T]) -> T:
        """Take steps to their end; what is to be awaited runs on a loop of the worker's own."""
        with self._alone():
            try:
                work, context = next(steps)
                while True:
                    try:
                        result = self._own_worker.completed(work, context)
                    except BaseException as error:
                        work, context = steps.throw(error)
                    else:
                        work, context = steps.send(result)
            except StopIteration as end:
                found: T = end.value
                return found

    async def _adone(self, steps: Steps[T]) -> T:
        """The same, on the loop that runs."""
        with self._alone():
            try:
                work, context = next(steps)
                while True:
                    try:
                        result = await asyncio.create_task(work, context=context)
                    except BaseException as error:
                        work, context = steps.throw(error)
                    else:
                        work, context = steps.send(result)
            except StopIteration as end:
                found: T = end.value
                return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Jobs run one at a time. Raises LifecycleError in one of them."""
        with self._turn:
            if self._running:
                raise LifecycleError("a job cannot have jobs run: they run when it has ended")
            self._running = True
            try:
                yield
            finally:
                self._running = False


def _raise_first(jobs: Sequence[Ran]) -> None:
    """Raise what the first job that failed has raised, as it was."""
    for job in jobs:
        if job.failed:
            assert job.error is not None
            job.error.add_note(
                f"raised by job {job.id} of task '{job.task}', attempt {job.attempt}, outcome"
                f" {job.outcome}; drain(raises=False) goes on"
            )
            raise job.error


@contextmanager
def in_memory(
    *, inline: bool = False, at: datetime | float | str | None = None
) -> Iterator[Harness]:
    """The process's queues are in memory inside of the block: see `Harness`. at: the time at which
    it begins, an aware datetime, Unix time or ISO text; None: now. Raises ConfigError where `at` is
    no such time or lupa is not installed (`rqueue[testing]`), LifecycleError inside of another such
    block."""
    with replaced_server(None if at is None else parse_moment(at, "at")) as (name, server):
        harness = Harness(name, server, inline=inline)
        try:
            yield harness
        finally:
            harness.close()
