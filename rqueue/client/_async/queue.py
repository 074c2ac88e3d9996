"""The client of one queue: what a web app uses to enqueue, and every program to reach a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.deletion import delete_queue
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue_settings import AsyncQueueSettings
from rqueue.client._async.schedules import AsyncSchedules
from rqueue.client._async.streams import enqueue_stream
from rqueue.client._async.transaction import AsyncTransaction
from rqueue.client._async.unique_keys import AsyncUniqueKeys
from rqueue.client._async.workflows import AsyncWorkflowHandle, enqueue_workflow
from rqueue.errors import ConfigError
from rqueue.model.envelope import Envelope
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.protocol import commands, put_buffer
from rqueue.protocol.browsing import Start
from rqueue.protocol.consumer_calls import Mode
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.forwarding import aforward
from rqueue.protocol.job_packer import Call, by_name, lease_of
from rqueue.protocol.put_buffer import ErrorListener
from rqueue.settings import Settings, redact
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.other_words import QUEUE_WORDS, other_attribute, with_known_options
from rqueue.tasks.stream import Stream
from rqueue.tasks.workflow import Workflow

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["AsyncQueue", "Call"]

P = ParamSpec("P")
R = TypeVar("R")

SIBLINGS_MAX = 1000
"""Queues over one connection that are remembered."""


class AsyncQueue(AsyncQueueSettings):
    """A queue, by name. Making one costs nothing: it connects at its first command.

    url: where Redis is; default RQUEUE_URL, else the development server of this folder. redis: an
    open `redis.asyncio` client instead. namespace: a prefix that keeps several applications apart
    in one Redis. signing_keys: sign what is enqueued. settings: all of them at once.

    In asyncio it belongs to one event loop, whose tasks may share it. In threads it may be shared
    by all of them, and is safe to use after a fork.
    """

    @with_known_options("a queue")
    def __init__(
        self,
        name: str = "default",
        url: str | None = None,
        *,
        redis: redis.asyncio.Redis | None = None,
        namespace: str | None = None,
        signing_keys: dict[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(
            name,
            url,
            redis=redis,
            namespace=namespace,
            signing_keys=signing_keys,
            settings=settings,
        )
        self._siblings: dict[str, AsyncQueue] = {name: self}

    # -- enqueue -----------------------------------------------------------------------------------

    @overload
    async def enqueue(
        self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]: ...
    @overload
    async def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> AsyncJobHandle[Any]: ...
    async def enqueue(
        self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> AsyncJobHandle[Any]:
        """Enqueue one call of a task, given as the task or by name (its code need not be here).

        For other options than the task's: `queue.enqueue(task.options(priority=9), ...)`, or
        `queue.send(name, args, kwargs, Options(...))`. Raises BadArguments, NotEncodable, and the
        server errors; what raises has stored nothing, but for NotConfirmed (the job is stored), and
        for RedisTimeout and ConnectionLost: then it is not known. To enqueue it again under the
        same id is safe.
        One that is interrupted while it waits for the answer may have stored the job.
        """
        if not isinstance(task, BoundTask):
            return await self.enqueue_request(by_name(task, args, kwargs))
        return await self.enqueue_request(task.request(task.defaults, args, kwargs))

    async def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> AsyncJobHandle[Any]:
        """Enqueue one call of a task by name, with options."""
        return await self.enqueue_request(by_name(task, args, kwargs, options))

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(async_sender=...)`."""
        return self.name

    async def enqueue_workflow(
        self, workflow: Workflow[R] | Stream[R], *, id: str | None = None, spread: bool = False
    ) -> AsyncWorkflowHandle[R]:
        """Enqueue the jobs of a workflow (`rqueue.chain`, `group`, `chord`, `stream`), all into
        this queue, some hundred in one step.

        spread: each job goes into the queue of its task instead, as with `workflow.enqueue()`; of
        a stream all have to be of one.
        id: of the job whose result is that of the workflow, default a new one; the ids of the
        others are derived from it. Where the call is interrupted, the same with the same id goes
        on: what is there already is not stored again. Raises ConfigError, BadArguments,
        NotEncodable, WorkflowEnded where a part of it has been cancelled or has failed meanwhile,
        WorkflowExists for an id under which another workflow is under way, StreamSealed, and the
        server errors; of a stream what its members raise when they are drawn.
        """
        if isinstance(workflow, Stream):
            return await enqueue_stream(self, workflow, id, spread)
        return await enqueue_workflow(self, workflow, id, spread)

    def transaction(self, consumer: AsyncConsumer | None = None) -> AsyncTransaction:
        """Several enqueues, and with a consumer what became of its jobs, as one step; see
        `AsyncTransaction`."""
        if consumer is not None and consumer.keys != self.keys:
            raise ConfigError("consumer", f"it is one of another queue than '{self.name}'")
        return AsyncTransaction(self, consumer)

    def putter(
        self,
        *,
        batch: int = put_buffer.BATCH,
        linger: float = put_buffer.LINGER_S,
        limit: int = put_buffer.LIMIT,
        limit_bytes: int = put_buffer.LIMIT_BYTES,
        timeout: float | None = None,
        on_error: ErrorListener | None = None,
    ) -> AsyncBackgroundPuts:
        """Background puts into this queue: enqueue without waiting; see `AsyncBackgroundPuts`."""
        return AsyncBackgroundPuts(
            self,
            batch=batch,
            linger=linger,
            limit=limit,
            limit_bytes=limit_bytes,
            timeout=timeout,
            on_error=on_error,
        )

    @property
    def schedules(self) -> AsyncSchedules:
        """Periodic jobs of this queue; see `AsyncSchedules`."""
        return AsyncSchedules(self)

    @property
    def unique(self) -> AsyncUniqueKeys:
        """The keys of unique jobs: who has one, and how it is freed."""
        return AsyncUniqueKeys(self)

    # -- jobs --------------------------------------------------------------------------------------

    def job(self, id: str) -> AsyncJobHandle[Any]:
        """The handle of a job enqueued before, here or elsewhere."""
        return AsyncJobHandle(self, check_id(id))

    def envelope(self, job: Delivery) -> Envelope:
        """What a delivered job carries: its task, arguments and options.

        Where the settings have signing keys, the signature is verified, and that the job is what
        was signed. Raises Undecodable, Unsigned, Forged.
        """
        return self._packer.envelope(job)

    # -- the queue ---------------------------------------------------------------------------------

    def at(self, name: str) -> AsyncQueue:
        """Another queue over the same connections."""
        found = self._siblings.get(name)
        if found is None:
            found = type(self)(name, redis=self.redis, settings=self.settings)
            found._transport = self._transport
            if len(self._siblings) < SIBLINGS_MAX:
                found._siblings = self._siblings
                self._siblings[name] = found
        return found

    async def forward(self) -> int:
        """Send what this queue has for other queues now (dead letters and expired jobs that go
        elsewhere, jobs of transactions); returns how many jobs went. Consumers and workers of the
        queue do so by themselves."""
        return await aforward(self._run, self.keys)

    async def pause(self) -> bool:
        """Deliver nothing from now on; True if that is a change. Jobs are still accepted."""
        return await self._run(commands.pause(self.keys))

    async def resume(self) -> bool:
        """Deliver again; True if that is a change."""
        return await self._run(commands.resume(self.keys))

    async def delete(
        self, *, jobs: bool = False, consumers: bool = False, jobs_to: str = ""
    ) -> int:
        """Delete the queue, with its options, its records and its history (Q-61); returns how many
        jobs ended with it, or went.

        It is refused if the queue has jobs or consumers, and if another queue's dead letters or
        expired jobs come here.

        - jobs: True if its jobs end with it, as purged.
        - jobs_to: the queue that its jobs are moved to (`move_all`). Dead letters and other jobs
          that cannot go are named in QueueInUse, and the queue stays. With jobs=True they end.
        - consumers: True if it may have consumers. Jobs that they hold go back, and their next
          calls raise ConsumerGone.

        While it is being deleted the queue takes nothing (RedisBusy). If this call is interrupted,
        the next one goes on. Raises QueueInUse, UnknownQueue, ConfigError.
        """
        return await delete_queue(self, jobs=jobs, consumers=consumers, jobs_to=jobs_to)

    async def counts(self) -> commands.Counts:
        """The queue in numbers: exact gauges and counters, in one look. Raises QueueSharded where
        these are those of its shards."""
        return await self._run_here(commands.counts(self.keys))

    async def get(self, timeout: float | None = 0) -> Delivery | None:
        """Take the next job out of the queue: it has ended, as acked, when it is returned (Q-25).
        None where none came in `timeout` seconds (None: for ever). Who dies behind this call has
        lost the job; to ack it later, receive it with a consumer."""
        async with self.consumer(mode="no_ack", slots=0, renew=timeout != 0) as consumer:
            return await consumer.receive(timeout)

    def consumer(
        self,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        credit: Credit | SharedCredit | None = None,
        priority: int = 0,
        mode: Mode = "acquire",
        lease: float | str | timedelta | None = None,
        slots: int = 1,
        history: bool = True,
        renew: bool = True,
        start: Start = "head",
        auto_close: bool = False,
        select: str = "",
    ) -> AsyncConsumer:
        """A consumer of this queue: the protocol one step at a time; see `AsyncConsumer`.
        select: only jobs with such labels (Q-22). Raises ConfigError, and InvalidSelector, which
        names the column."""
        return AsyncConsumer(
            self.redis,
            self.keys,
            name=name,
            jobs=jobs,
            bytes=bytes,
            credit=credit,
            priority=priority,
            mode=mode,
            lease_ms=lease_of(lease, self.settings),
            slots=slots,
            history=history,
            renew=renew,
            start=start,
            auto_close=auto_close,
            select=select,
            table_steps=self.table_steps,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __getattr__(self, name: str) -> Any:
            raise other_attribute("a queue", name, QUEUE_WORDS)

    def __repr__(self) -> str:
        where = redact(self.settings.url) if self.settings.url else "an open connection"
        return f"<AsyncQueue {self.name!r} at {where}>"
