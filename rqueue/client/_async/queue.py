"""The client of one queue for asyncio: `Queue`, to be awaited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.model.envelope import Envelope
from rqueue.model.expect import expect
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.model.names import check_queue
from rqueue.protocol import commands, put_buffer
from rqueue.protocol.commands.consumers import Mode
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.job_packer import (
    Call,
    Packer,
    another_id,
    by_name,
    configuration,
    lease_of,
    renamed,
    terms_of,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.put_buffer import ErrorListener
from rqueue.settings import Settings, redact
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.transport.async_connections import AsyncConnections
from rqueue.transport.discovery import with_url
from rqueue.transport.redis_client import open_async_client, patience_of, require_bytes
from rqueue.transport.server_check import afirst_look

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["AsyncQueue"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

SIBLINGS_MAX = 1000
"""Queues over one connection that are remembered."""


class AsyncQueue:
    """A queue, by name. Making one costs nothing: it connects at its first command.

    url: where Redis is; default RQUEUE_URL, else the development server of this folder. redis: an
    open `redis.asyncio` client instead. namespace, signing_keys, settings: as for
    `rqueue.client._sync.queue.Queue`. Of one event loop.
    """

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
        given = Settings.of(settings, url=url, namespace=namespace, signing_keys=signing_keys)
        self.settings = given
        self.keys = QueueKeys(check_queue(name), given.namespace)
        self.name = name
        self._packer = Packer(self.keys, given)
        self._siblings: dict[str, AsyncQueue] = {name: self}
        self._looked = False
        self._owns = redis is None
        if redis is not None:
            require_bytes(redis)
            self.redis = redis
            patience = patience_of(redis)
        else:
            self.settings = given = with_url(given)
            self.redis = open_async_client(
                str(given.url),
                socket_connect_timeout=given.connect_timeout,
                socket_timeout=given.command_timeout + 20,
            )
            patience = given.command_timeout
        self._connections = AsyncConnections(self.redis, patience)

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
        """Enqueue one call of a task, given as the task or by name; as `Queue.enqueue`.

        Cancelled while it waits for the answer, it may have stored the job.
        """
        if not isinstance(task, BoundTask):
            return await self.send(task, args, kwargs)
        check = task.check
        check(args, kwargs)
        return await self.enqueue_task(
            self.name, task.name, args, kwargs, task.defaults, check.positional
        )

    async def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> AsyncJobHandle[Any]:
        """Enqueue one call of a task by name, with options."""
        return await self.enqueue_task(self.name, *by_name(task, args, kwargs, options))

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(async_sender=...)`."""
        return self.name

    async def enqueue_task(
        self,
        queue: str,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> AsyncJobHandle[Any]:
        """What tasks call (`rqueue.tasks.enqueuer.AsyncEnqueuer`). `queue` may be another than this
        one."""
        target = self if queue == self.name else self.at(queue)
        id_, body, own = target._packer.pack(task, args, kwargs, options, parameters)
        terms = terms_of(options)
        while True:
            signed = target._packer.signed(id_, body, terms)
            call = commands.enqueue_one(
                target.keys, id_, signed, terms, immediate=options.immediate
            )
            answer = await target._run(call)
            # the connection may have sent it twice: then an id made here is known from the first
            if answer.accepted or answer.again or not own:
                break
            id_ = another_id(id_, target.name)
        created = own or answer.accepted == 1
        return AsyncJobHandle(target, id_, created=created, handed_to=answer.handed_to)

    async def enqueue_many(self, calls: Iterable[Call]) -> list[AsyncJobHandle[Any]]:
        """Enqueue many calls, in order, hundreds in one step; as `Queue.enqueue_many`."""
        handles: list[AsyncJobHandle[Any]] = []
        for batch in self._packer.batches(calls):
            accepted = await self.enqueue_puts([put for put, _ in batch])
            known = set(accepted.known)
            while twins := renamed(batch, accepted, self.name):
                answer = await self.enqueue_puts([batch[index][0] for index in twins])
                accepted = answer.of(twins)
            handles += [
                AsyncJobHandle(self, put.id, created=own or index not in known)
                for index, (put, own) in enumerate(batch)
            ]
        return handles

    async def enqueue_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already, at most 1000."""
        return await self._run(commands.enqueue(self.keys, self._packer.signed_puts(puts)))

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

    async def _run(self, call: commands.ScriptCall[T]) -> T:
        answer = await self._connections.run(call, queue=self.name)
        if not self._looked:
            self._looked = True
            await afirst_look(self.redis)
        return answer

    # -- jobs --------------------------------------------------------------------------------------

    def job(self, id: str) -> AsyncJobHandle[Any]:
        """The handle of a job enqueued before, here or elsewhere."""
        return AsyncJobHandle(self, check_id(id))

    def envelope(self, job: Delivery) -> Envelope:
        """What a job in a consumer's hands carries: its task, arguments and options.

        Where the settings have signing keys, the signature is verified, and that the job is what
        was signed. Raises Undecodable, Unsigned, Forged.
        """
        return self._packer.envelope(job)

    async def cancel(self, id: str, *, held: bool = True) -> bool:
        """Cancel a job; True if it had not ended; as `Queue.cancel`."""
        expect("id", id, str, "a job's id")
        expect("held", held, bool, "True or False")
        was = await self._run(commands.cancel(self.keys, id, held=held))
        return was in ("ready", "scheduled", "held")

    async def promote(self, *ids: str) -> int:
        """Make scheduled jobs ready now, at the head of their levels (A-09); returns how many.

        Signed jobs are signed anew, for now. Raises Forged for one whose signature does not hold.
        """
        if not ids:
            return 0
        if self._packer.signs:
            for id_ in ids:
                shown = await self._run(commands.show(self.keys, id_))
                job = Delivery(id_, shown.value)
                if shown.state == "scheduled" and (fresh := self._packer.signed_for_now(job)):
                    await self._run(commands.resign(self.keys, id_, job.body, fresh))
        return await self._run(commands.promote(self.keys, ids))

    # -- the queue ---------------------------------------------------------------------------------

    def at(self, name: str) -> AsyncQueue:
        """Another queue over the same connection."""
        found = self._siblings.get(name)
        if found is None:
            found = type(self)(name, redis=self.redis, settings=self.settings)
            found._looked = self._looked
            found._connections = self._connections
            if len(self._siblings) < SIBLINGS_MAX:
                found._siblings = self._siblings
                self._siblings[name] = found
        return found

    async def pause(self) -> bool:
        """Hand nothing out from now on; True if that is a change. Jobs are still accepted."""
        return await self._run(commands.pause(self.keys))

    async def resume(self) -> bool:
        """Hand out again; True if that is a change."""
        return await self._run(commands.resume(self.keys))

    async def configure(
        self,
        *,
        priorities: int | None = None,
        max_deliveries: int | None = None,
        max_crashes: int | None = None,
        keep: float | str | timedelta | None = None,
        history_rows_max: int | None = None,
    ) -> None:
        """Set the queue's own options, for all its clients and workers; as `Queue.configure`."""
        options = configuration(priorities, max_deliveries, max_crashes, keep, history_rows_max)
        await self._run(commands.configure(self.keys, options))

    async def counts(self) -> commands.Counts:
        """The queue in numbers: exact gauges and counters, in one look."""
        return await self._run(commands.counts(self.keys))

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
    ) -> AsyncConsumer:
        """A consumer of this queue: the protocol one step at a time; see `Consumer`."""
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
        )

    async def close(self) -> None:
        """Close the connections that this queue opened."""
        await self._connections.close()
        if self._owns:
            await self.redis.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        where = redact(self.settings.url) if self.settings.url else "an open connection"
        return f"<AsyncQueue {self.name!r} at {where}>"
