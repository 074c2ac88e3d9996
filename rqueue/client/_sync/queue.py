# Generated from rqueue/client/_async/queue.py (`make generate`): do not edit.
"""The client of one queue: what a web app uses to enqueue, and every program to reach a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.deletion import delete_queue
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue_settings import QueueSettings
from rqueue.client._sync.schedules import Schedules
from rqueue.client._sync.streams import enqueue_stream
from rqueue.client._sync.transaction import Transaction
from rqueue.client._sync.unique_keys import UniqueKeys
from rqueue.client._sync.workflows import WorkflowHandle, enqueue_workflow
from rqueue.errors import ConfigError
from rqueue.model.envelope import Envelope
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.protocol import commands, put_buffer
from rqueue.protocol.browsing import Start
from rqueue.protocol.consumer_calls import Mode
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.forwarding import forward
from rqueue.protocol.job_packer import Call, by_name, lease_of
from rqueue.protocol.put_buffer import ErrorListener
from rqueue.settings import Settings, redact
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.other_words import QUEUE_WORDS, other_attribute, with_known_options
from rqueue.tasks.stream import Stream
from rqueue.tasks.workflow import Workflow

if TYPE_CHECKING:
    import redis

__all__ = ["Call", "Queue"]

P = ParamSpec("P")
R = TypeVar("R")

SIBLINGS_MAX = 1000
"""Queues over one connection that are remembered."""


class Queue(QueueSettings):
    """A queue, by name. Making one costs nothing: it connects at its first command.

    url: where Redis is; default RQUEUE_URL, else the development server of this folder. redis: an
    open `redis` client instead. namespace: a prefix that keeps several applications apart
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
        redis: redis.Redis | None = None,
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
        self._siblings: dict[str, Queue] = {name: self}

    # -- enqueue -----------------------------------------------------------------------------------

    @overload
    def enqueue(
        self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]: ...
    @overload
    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]: ...
    def enqueue(
        self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> JobHandle[Any]:
        """Enqueue one call of a task, given as the task or by name (its code need not be here).

        For other options than the task's: `queue.enqueue(task.options(priority=9), ...)`, or
        `queue.send(name, args, kwargs, Options(...))`. Raises BadArguments, NotEncodable, and the
        server errors; what raises has stored nothing, but for NotConfirmed (the job is stored), and
        for RedisTimeout and ConnectionLost: then it is not known. To enqueue it again under the
        same id is safe.
        One that is interrupted while it waits for the answer may have stored the job.
        """
        if not isinstance(task, BoundTask):
            return self.enqueue_request(by_name(task, args, kwargs))
        return self.enqueue_request(task.request(task.defaults, args, kwargs))

    def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> JobHandle[Any]:
        """Enqueue one call of a task by name, with options."""
        return self.enqueue_request(by_name(task, args, kwargs, options))

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(sender=...)`."""
        return self.name

    def enqueue_workflow(
        self, workflow: Workflow[R] | Stream[R], *, id: str | None = None, spread: bool = False
    ) -> WorkflowHandle[R]:
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
            return enqueue_stream(self, workflow, id, spread)
        return enqueue_workflow(self, workflow, id, spread)

    def transaction(self, consumer: Consumer | None = None) -> Transaction:
        """Several enqueues, and with a consumer what became of its jobs, as one step; see
        `Transaction`."""
        if consumer is not None and consumer.keys != self.keys:
            raise ConfigError("consumer", f"it is one of another queue than '{self.name}'")
        return Transaction(self, consumer)

    def putter(
        self,
        *,
        batch: int = put_buffer.BATCH,
        linger: float = put_buffer.LINGER_S,
        limit: int = put_buffer.LIMIT,
        limit_bytes: int = put_buffer.LIMIT_BYTES,
        timeout: float | None = None,
        on_error: ErrorListener | None = None,
    ) -> BackgroundPuts:
        """Background puts into this queue: enqueue without waiting; see `BackgroundPuts`."""
        return BackgroundPuts(
            self,
            batch=batch,
            linger=linger,
            limit=limit,
            limit_bytes=limit_bytes,
            timeout=timeout,
            on_error=on_error,
        )

    @property
    def schedules(self) -> Schedules:
        """Periodic jobs of this queue; see `Schedules`."""
        return Schedules(self)

    @property
    def unique(self) -> UniqueKeys:
        """The keys of unique jobs: who has one, and how it is freed."""
        return UniqueKeys(self)

    # -- jobs --------------------------------------------------------------------------------------

    def job(self, id: str) -> JobHandle[Any]:
        """The handle of a job enqueued before, here or elsewhere."""
        return JobHandle(self, check_id(id))

    def envelope(self, job: Delivery) -> Envelope:
        """What a delivered job carries: its task, arguments and options.

        Where the settings have signing keys, the signature is verified, and that the job is what
        was signed. Raises Undecodable, Unsigned, Forged.
        """
        return self._packer.envelope(job)

    # -- the queue ---------------------------------------------------------------------------------

    def at(self, name: str) -> Queue:
        """Another queue over the same connections."""
        found = self._siblings.get(name)
        if found is None:
            found = type(self)(name, redis=self.redis, settings=self.settings)
            found._transport = self._transport
            if len(self._siblings) < SIBLINGS_MAX:
                found._siblings = self._siblings
                self._siblings[name] = found
        return found

    def forward(self) -> int:
        """Send what this queue has for other queues now (dead letters and expired jobs that go
        elsewhere, jobs of transactions); returns how many jobs went. Consumers and workers of the
        queue do so by themselves."""
        return forward(self._run, self.keys)

    def pause(self) -> bool:
        """Deliver nothing from now on; True if that is a change. Jobs are still accepted."""
        return self._run(commands.pause(self.keys))

    def resume(self) -> bool:
        """Deliver again; True if that is a change."""
        return self._run(commands.resume(self.keys))

    def delete(self, *, jobs: bool = False, consumers: bool = False, jobs_to: str = "") -> int:
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
        return delete_queue(self, jobs=jobs, consumers=consumers, jobs_to=jobs_to)

    def counts(self) -> commands.Counts:
        """The queue in numbers: exact gauges and counters, in one look. Raises QueueSharded where
        these are those of its shards."""
        return self._run_here(commands.counts(self.keys))

    def get(self, timeout: float | None = 0) -> Delivery | None:
        """Take the next job out of the queue: it has ended, as acked, when it is returned (Q-25).
        None where none came in `timeout` seconds (None: for ever). Who dies behind this call has
        lost the job; to ack it later, receive it with a consumer."""
        with self.consumer(mode="no_ack", slots=0, renew=timeout != 0) as consumer:
            return consumer.receive(timeout)

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
    ) -> Consumer:
        """A consumer of this queue: the protocol one step at a time; see `Consumer`.
        select: only jobs with such labels (Q-22). Raises ConfigError, and InvalidSelector, which
        names the column."""
        return Consumer(
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __getattr__(self, name: str) -> Any:
            raise other_attribute("a queue", name, QUEUE_WORDS)

    def __repr__(self) -> str:
        where = redact(self.settings.url) if self.settings.url else "an open connection"
        return f"<Queue {self.name!r} at {where}>"
