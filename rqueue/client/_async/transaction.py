"""Several enqueues, and what became of jobs, as one step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._async.consumer_commit import AsyncConsumerCommit
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import ConfigError, ServerError, TransactionRolledBack
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.forwarding import aforward_soon
from rqueue.protocol.job_packer import Call
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import refuse_spread
from rqueue.protocol.transaction_parts import TransactionParts
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.request import JobRequest

__all__ = ["AsyncTransaction"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncEnqueues(ABC):
    """What is enqueued when a transaction is committed."""

    @overload
    def enqueue(
        self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]: ...
    @overload
    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> AsyncJobHandle[Any]: ...
    def enqueue(
        self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> AsyncJobHandle[Any]:
        """Enqueue one call of a task when this is committed; see `queue.enqueue`. Raises
        BadArguments, NotEncodable, ConfigError."""
        return self._add(Call(task, args, kwargs).resolve())

    def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> AsyncJobHandle[Any]:
        """Enqueue one call of a task by name, with options, when this is committed."""
        return self._add(Call(task, args, kwargs, options).resolve())

    @abstractmethod
    def _add(self, request: JobRequest) -> AsyncJobHandle[Any]:
        """Gather one job."""


class AsyncTransaction(AsyncEnqueues):
    """What is gathered in it is sent when the `with` block ends, in one step: all of it, or nothing
    (Q-73). Nothing is sent before; where the block raises, nothing is sent at all.

    Made by `queue.transaction()`. With a consumer of that queue the jobs that it holds may be
    settled in the same step. The handles that `enqueue` returns have their ids at once, and know
    whether they were `created` when it is committed. At most 1000 jobs, and as many settled ones.
    """

    def __init__(self, queue: AsyncQueueCalls, consumer: AsyncConsumerCommit | None = None) -> None:
        self._queue = queue
        self._consumer = consumer
        self._parts = TransactionParts(queue.name, settles=consumer is not None)
        self._handles: list[AsyncJobHandle[Any]] = []

    # -- what is to be done ------------------------------------------------------------------------

    def at(self, queue: AsyncQueueCalls) -> AsyncElsewhere:
        """Another queue, `queue.at(name)`, to enqueue in: what goes there leaves this one with the
        same step, through its outbox, and is enqueued there once, a moment later."""
        if queue.keys.namespace != self._queue.keys.namespace:
            raise ConfigError("queue", f"'{queue.name}' is one of another namespace")
        return AsyncElsewhere(self, queue)

    def _add(self, request: JobRequest) -> AsyncJobHandle[Any]:
        return self._gather(request, self._queue)

    def _gather(self, request: JobRequest, target: AsyncQueueCalls) -> AsyncJobHandle[Any]:
        put = self._parts.enqueue(target._packer, request._replace(queue=target.name))
        handle: AsyncJobHandle[Any] = AsyncJobHandle(target, put.id)
        if target.name == self._queue.name:
            self._handles.append(handle)
        return handle

    def ack(self, *jobs: Delivery | str) -> None:
        """Done; nothing to keep."""
        self._parts.settle("ack", jobs)

    def done(self, job: Delivery | str, result: Any) -> None:
        """Done, and this is the result."""
        self._parts.settle("done", [(job, result)])

    def retry(
        self,
        job: Delivery | str,
        delay: float = 0.0,
        error: dict[str, Any] | None = None,
        *,
        place: str = "",
        charge: bool = True,
    ) -> None:
        """Failed, again in `delay` seconds; see `AsyncConsumer.retry`."""
        self._parts.retry(job, delay, error, place, charge)

    def release(self, *jobs: Delivery | str) -> None:
        """Returned unstarted, uncounted, to its old position."""
        self._parts.settle("release", jobs)

    def reject(self, job: Delivery | str, reason: str, kind: str = "rejected") -> None:
        """Failed for good, to the dead letters."""
        self._parts.refuse_settles()
        assert self._consumer is not None
        self._parts.settle("reject", [(job, self._consumer._cause(reason, kind))])

    # -- the end -----------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Do all of it. Raises TransactionRolledBack where the consumer does not hold one of the
        jobs any more, QueueSharded where another queue that gets jobs is spread over shards,
        RegistrationLost and the server errors: nothing was done then, but for RedisTimeout and
        ConnectionLost, where that is not known, and for NotConfirmed: all of it was done."""
        self._parts.close()
        if self._parts:
            await self._do()

    async def _do(self) -> None:
        parts = self._parts
        await self._require_targets()
        if parts.confirm is not None:
            await self._queue._check_confirmable(parts.confirm)
        puts = self._queue._packer.signed_puts(parts.puts)
        if self._consumer is None:
            committed = await self._queue._run(parts.call(self._queue.keys, puts))
        else:
            committed = await self._consumer._commit(parts, puts, self._queue._transport)
        unconfirmed = committed.unconfirmed
        for index in committed.known:
            self._handles[index].created = parts.own[index]
        for other in committed.answered:
            handle = self._handles[other.place]
            handle.id, handle.created, handle.conflict = other.id, False, other.state
        if twins := parts.twins(committed):
            # another process made these ids in the same millisecond
            renamed = self._queue._packer.signed_puts([parts.puts[index] for index in twins])
            call = commands.enqueue(self._queue.keys, renamed, confirm=parts.confirm)
            if parts.version:
                call = of_version(call, parts.version)
            unconfirmed = unconfirmed or (await self._queue._run(call)).unconfirmed
            for index in twins:
                self._handles[index].id = parts.puts[index].id
        for handle in self._handles[:1]:
            handle.handed_to = committed.handed_to
        if parts.others:
            run = partial(self._queue._transport.run, queue=self._queue.name)
            await aforward_soon(run, self._queue.keys)
        if committed.stale and not committed.done_before(len(parts.certain(committed))):
            raise TransactionRolledBack(committed.stale, queue=self._queue.name)
        self._queue._require_confirmed(
            unconfirmed, [put.id for put in (*parts.puts, *(put for _, put in parts.others))]
        )

    async def _require_targets(self) -> None:
        """Raise QueueSharded where another queue is spread: what leaves with the step is taken by
        one queue there. It is asked once, by each `AsyncQueue`; one that cannot be reached may take
        its jobs later."""
        for name in dict.fromkeys(name for name, _ in self._parts.others):
            keys = QueueKeys(name, self._queue.keys.namespace)
            if name not in self._queue.targets:
                self._queue.targets.add(name)
                with suppress(ServerError):
                    await self._queue._run(commands.counts(keys, oldest=False))
            refuse_spread(keys)

    def rollback(self) -> None:
        """Do nothing of it: what it was to settle stays held."""
        self._parts.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.rollback()
        elif not self._parts.closed:
            await self.commit()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._parts!r} in queue {self._queue.name!r}>"


class AsyncElsewhere(AsyncEnqueues):
    """Enqueues of a transaction in another queue than its own."""

    def __init__(self, transaction: AsyncTransaction, queue: AsyncQueueCalls) -> None:
        self._transaction = transaction
        self._queue = queue

    def _add(self, request: JobRequest) -> AsyncJobHandle[Any]:
        return self._transaction._gather(request, self._queue)
