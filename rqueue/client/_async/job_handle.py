"""What enqueue returns: the job's id, and its result when it has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import QueueSharded, ServerError
from rqueue.model.cancellation import Cancellation
from rqueue.model.job import JobState
from rqueue.model.progress import JobUpdate, Progress
from rqueue.protocol.job_watch import JobWatch
from rqueue.protocol.result_wait import (
    ResultWait,
    await_result,
    merged_into,
    read_result,
    read_state,
)
from rqueue.protocol.state_watch import StateWatch
from rqueue.tasks.other_words import HANDLE_WORDS, other_attribute
from rqueue.text.escape import escaped
from rqueue.transport.redis_client import url_of

R_co = TypeVar("R_co", covariant=True)


class AsyncJobHandle(Generic[R_co]):
    """One job. `created` is False when a job of its id was known before: nothing was stored then.

    None: it waits for the commit of a transaction. `handed_to`: the consumer that it was delivered
    to at once, "" if none. `conflict`: what was enqueued is unique, and this is the other job that
    stands for it; the state in which that was then ("done" where its period is not over), "" where
    there was none. A unique job that an outbox merges into another one goes on as that: the handle
    has its `id` from the next question on.
    """

    __slots__ = ("_queue", "conflict", "created", "handed_to", "id")

    def __init__(
        self,
        queue: AsyncQueueCalls,
        id: str,
        *,
        created: bool | None = True,
        handed_to: str = "",
        conflict: str = "",
    ) -> None:
        self._queue = queue
        self.id = id
        self.conflict = conflict
        self.created = created
        self.handed_to = handed_to

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __getattr__(self, name: str) -> Any:
            raise other_attribute("a job's handle", name, HANDLE_WORDS)

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._queue.name

    async def state(self) -> JobState:
        """Where the job is now; UNKNOWN if it was never accepted or its record is gone."""
        call = await_result(self._queue.keys, self.id, wait=False)
        try:
            seen = await self._queue._run(call)
        except QueueSharded:
            self._queue = await self._queue.holder(self.id)
            return await self.state()
        if other := merged_into(seen.record):
            self.id = other
            return await self.state()
        return read_state(seen)

    async def _goes_on(self, wait: StateWatch | JobWatch | None = None) -> bool:
        """True if the job is merged into another one; the handle, and `wait`, are of that one from
        now on."""
        before = self.id
        await self.state()
        if wait is not None and self.id != before:
            wait.goes_on_as(self.id)
        return self.id != before

    async def states(self, timeout: float | None = None) -> AsyncIterator[JobState]:
        """The job's states, one after the other: the one it is in now, those that it is found in as
        its queue's history goes on (after each attempt, when people change something), and the one
        in which it ends; for at most `timeout` seconds (None: until then).

        Listens without polling. That a worker has taken the job is no row of the history: `held` is
        seen 20 seconds later at the most. Goes on while Redis is gone, as `result` does. Raises
        UnknownJob, and the server errors.
        """
        patience = self._queue._transport.patience
        watch = StateWatch(self._queue.keys, self.id, timeout, patience)
        while not watch.over:
            try:
                state = await self._next_state(watch)
            except (QueueSharded, ServerError) as error:
                await self._begin_anew(watch, error)
            else:
                if state is not None:
                    yield state

    async def _next_state(self, watch: StateWatch) -> JobState | None:
        """The state that the job is found in; None: go on listening."""
        queue = self._queue
        call, command = watch.ask()
        if not command:
            state = watch.heard(await queue._run(call))
            merged = state is JobState.MOVED and await self._goes_on(watch)
            return None if merged else state
        _, entries = await queue._transport.run_then(call, command, queue=queue.name)
        watch.went_on(entries)
        return None

    async def _begin_anew(
        self, wait: ResultWait | StateWatch | JobWatch, error: QueueSharded | ServerError
    ) -> None:
        """An ask has failed: of a queue that is spread, the job's shard is asked from now on; else
        it is asked again after a pause. Raises the server errors, where that is of no use."""
        try:
            if isinstance(error, ServerError):
                raise error
            self._queue = await self._queue.holder(self.id)
            wait.at(self._queue.keys)
        except ServerError as failed:
            await asyncio.sleep(wait.pause(failed))

    async def watch(self, timeout: float | None = None) -> AsyncIterator[JobUpdate]:
        """The job's state, what it reports of its progress and the lines that it logs, again and
        again as they change, to its end; for at most `timeout` seconds (None: until then). What
        comes last has the state in which the job ended.

        Waits without polling, and is woken by this job alone: by its reports, and by its end. A
        change that is neither (a worker takes it, it waits for its next attempt) is seen with the
        next report, or 20 seconds later at the most; `states` hears of more. Goes on while Redis is
        gone, as `result` does. Raises UnknownJob, and the server errors.
        """
        patience = self._queue._transport.patience
        watch = JobWatch(self._queue.keys, self.id, timeout, patience)
        while not watch.over:
            try:
                update = await self._next_update(watch)
            except (QueueSharded, ServerError) as error:
                await self._begin_anew(watch, error)
            else:
                if update is not None:
                    yield update

    async def progress(self) -> Progress | None:
        """What the job has reported of its progress last, None: nothing, or it is done. It does not
        wait: for a page that shows it. Raises UnknownJob, and the server errors."""
        async for update in self.watch(timeout=0):
            return update.progress
        return None

    async def _next_update(self, watch: JobWatch) -> JobUpdate | None:
        """What is new; None: go on watching."""
        queue = self._queue
        if block := watch.block():
            answers = await queue._transport.run_then(watch.stay, block, queue=queue.name)
            watch.woken(answers[1])
        update = watch.heard(await queue._run(watch.look()))
        merged = update and update.state is JobState.MOVED and await self._goes_on(watch)
        return None if merged else update

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, at most `timeout` seconds (None: for ever; 0: do not wait).

        Waits without polling and consumes nothing: any number of callers may ask, again and again,
        while the record lasts. It goes on while Redis is gone, starts or is busy, until the time is
        over: then that error is raised. Raises ResultTimeout (or ResultNotReady, where timeout is
        0) with the job's state, JobFailed with the remote traceback, JobCancelled, JobPurged,
        JobExpired, ResultExpired, UnknownJob, and the server errors. A wait that is broken off (a
        time-out around it, a client that hung up) changes nothing for the job.
        """
        queue = self._queue
        patience = queue._transport.patience
        wait = ResultWait(queue.keys, self.id, timeout, patience, partial(url_of, queue.redis))
        while True:
            queue = self._queue
            try:
                call, block = wait.ask()
                if block:
                    answers = await queue._transport.run_then(call, block, queue=queue.name)
                    record = wait.heard(*answers)
                else:
                    record = wait.heard(await queue._run(call))
            except (QueueSharded, ServerError) as error:
                await self._begin_anew(wait, error)
            else:
                if record is not None:
                    if other := merged_into(record):
                        self.id = other
                        wait.goes_on_as(other)
                        continue
                    value: R_co = read_result(self.id, record)
                    return value

    async def cancel(
        self,
        *,
        held: bool = True,
        running: bool = False,
        kill: bool = False,
        timeout: float | None = 0.0,
    ) -> Cancellation:
        """Cancel the job; true if it had not ended. Where a worker runs it already (`held`), the
        worker gets a wake-up and the outcome does not count any more; running=True interrupts the
        code, kill=True kills its process. For all of it see `AsyncQueue.cancel`."""
        done = await self._queue.cancel(
            self.id, held=held, running=running, kill=kill, timeout=timeout
        )
        if not done and await self._goes_on():
            return await self.cancel(held=held, running=running, kill=kill, timeout=timeout)
        return done

    def __repr__(self) -> str:
        return f"<job {escaped(self.id)} of queue {self.queue!r}>"
