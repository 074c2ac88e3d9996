"""The client of one queue: what a web app uses to enqueue, and everybody to reach a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

import redis

from rqueue import store
from rqueue.codec import Signer, pack
from rqueue.connection import execute, open_client, require_bytes, shown_url
from rqueue.consumer import Consumer
from rqueue.errors import ConfigError, NotEncodable
from rqueue.handle import JobHandle
from rqueue.ids import check_id, new_id
from rqueue.keys import QueueKeys
from rqueue.options import DEFAULT_PRIORITY, NO_OPTIONS, Options
from rqueue.settings import Settings, parse_duration, parse_when
from rqueue.store.consumers import Mode
from rqueue.store.enqueue import BATCH, Accepted, Put
from rqueue.task import BoundTask


class Call(NamedTuple):
    """One call for `enqueue_many`: a task (or its name), arguments, and what differs in options."""

    task: BoundTask[..., Any] | str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] | None = None
    options: Options | None = None


class Queue:
    """A queue, by name. Making one costs nothing: it connects at its first command.

    url: where Redis is; default RQUEUE_URL. redis: an open redis-py client instead. namespace: a
    prefix that keeps several applications apart in one Redis. signing_keys: sign what is enqueued.
    Thread-safe, and safe to use after a fork, as redis-py's pool is.
    """

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
        given = settings or Settings.load(url=url, namespace=namespace, signing_keys=signing_keys)
        self.settings = given
        self.keys = QueueKeys(name, given.namespace)
        self.name = name
        self._signer: Signer | None = given.signer
        self._owns = redis is None
        if redis is not None:
            require_bytes(redis)
            self.redis = redis
        elif given.url:
            self.redis = open_client(
                given.url,
                socket_connect_timeout=given.connect_timeout,
                socket_timeout=given.command_timeout + 20,
            )
        else:
            raise ConfigError(
                "url", "set RQUEUE_URL, or pass url='redis://host:6379/0' or redis=client"
            )

    # -- enqueue -----------------------------------------------------------------------------------

    def enqueue(
        self,
        task: BoundTask[..., Any] | str,
        *args: Any,
        **kwargs: Any,
    ) -> JobHandle[Any]:
        """Enqueue one call of a task, given as the task or by name (its code need not be here).

        For other options than the task's: `queue.enqueue(task.options(priority=9), ...)`, or
        `queue.send(name, args, kwargs, Options(...))`. Raises NotEncodable, BadArguments, and the
        server errors; what raises has stored nothing.
        """
        if isinstance(task, str):
            return self.send(task, args, kwargs)
        task.check_call(args, kwargs)
        return self.enqueue_task(self.name, task.name, args, kwargs, task.defaults, task.parameters)

    def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> JobHandle[Any]:
        """Enqueue one call of a task by name, with options."""
        return self.enqueue_task(self.name, task, tuple(args), kwargs or {}, options, ())

    def enqueue_task(
        self,
        queue: str,
        task: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Options,
        parameters: tuple[str, ...],
    ) -> JobHandle[Any]:
        """What tasks call (`rqueue.sender.Sender`). `queue` may be another than this one."""
        target = self if queue == self.name else self.at(queue)
        put = target._put(task, args, kwargs, options, parameters)
        call = store.enqueue(target.keys, (put,), immediate=options.immediate)
        answer = execute(self.redis, call, queue=queue)
        return JobHandle(target, put.id, created=answer.accepted == 1, handed_to=answer.handed_to)

    def enqueue_many(self, calls: Iterable[Call]) -> list[JobHandle[Any]]:
        """Enqueue many calls, in order, hundreds in one step (C-20 without its shared fate: each
        is a job of its own). A step is atomic: all its jobs or, on an error, none."""
        handles: list[JobHandle[Any]] = []
        batch: list[Put] = []
        for call in calls:
            parameters: tuple[str, ...] = ()
            if isinstance(call.task, str):
                name, options = call.task, call.options or NO_OPTIONS
            else:
                call.task.check_call(tuple(call.args), call.kwargs or {})
                name, parameters = call.task.name, call.task.parameters
                options = call.options or call.task.defaults
            batch.append(self._put(name, call.args, call.kwargs or {}, options, parameters))
            if len(batch) == BATCH:
                handles += self._flush(batch)
                batch = []
        if batch:
            handles += self._flush(batch)
        return handles

    def _flush(self, batch: list[Put]) -> list[JobHandle[Any]]:
        answer = execute(self.redis, store.enqueue(self.keys, batch), queue=self.name)
        known = set(answer.known)
        return [JobHandle(self, put.id, created=i not in known) for i, put in enumerate(batch)]

    def enqueue_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already: for pipelines and background puts."""
        return execute(self.redis, store.enqueue(self.keys, puts), queue=self.name)

    def _put(
        self,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> Put:
        id_ = options.id
        if id_ is None:
            id_ = new_id()
        else:
            check_id(id_)
        body = pack(task, args, kwargs, options.to_opts(), parameters)
        if len(body) > self.settings.max_body:
            raise NotEncodable(
                "",
                task,
                f"{len(body)} bytes of arguments; at most {self.settings.max_body}: "
                "store the data elsewhere and pass a reference",
            )
        if self._signer is not None:
            body = self._signer.sign(self.name, id_, body)
        return Put(
            id_,
            body,
            DEFAULT_PRIORITY if options.priority is None else options.priority,
            options.delay_ms or 0,
            options.at_ms or 0,
            options.max_deliveries or 0,
        )

    # -- jobs --------------------------------------------------------------------------------------

    def job(self, id: str) -> JobHandle[Any]:
        """The handle of a job enqueued before, here or elsewhere."""
        return JobHandle(self, check_id(id))

    def cancel(self, id: str, *, held: bool = True) -> bool:
        """Cancel a job; True if it had not ended. held=False leaves a job alone that a worker has
        in its hands (C-25)."""
        was = execute(self.redis, store.cancel(self.keys, id, held=held), queue=self.name)
        return was in ("ready", "scheduled", "held")

    def promote(self, *ids: str) -> int:
        """Make scheduled jobs ready now, at the head of their levels (A-09); returns how many."""
        return execute(self.redis, store.promote(self.keys, ids), queue=self.name) if ids else 0

    # -- the queue ---------------------------------------------------------------------------------

    def at(self, name: str) -> Queue:
        """Another queue over the same connection."""
        return type(self)(name, redis=self.redis, settings=self.settings)

    def pause(self) -> bool:
        """Hand nothing out from now on; True if that is a change. Jobs are still accepted."""
        return execute(self.redis, store.pause(self.keys), queue=self.name)

    def resume(self) -> bool:
        """Hand out again; True if that is a change."""
        return execute(self.redis, store.resume(self.keys), queue=self.name)

    def configure(
        self,
        *,
        priorities: int | None = None,
        max_deliveries: int | None = None,
        keep: float | str | timedelta | None = None,
        history_rows_max: int | None = None,
    ) -> None:
        """Set the queue's own options, for all its clients and workers.

        priorities: how many levels (1 to 100, default 10; Q-11), not to be changed once jobs are
        there. max_deliveries: attempts of a job that says nothing else (default 10; 0: no limit).
        keep: how long records and results of ended jobs last (default 10 minutes).
        history_rows_max: rows that the history keeps (default 200,000). Raises ScriptError.
        """
        options: dict[str, int] = {}
        if priorities is not None:
            options["priorities"] = priorities
        if max_deliveries is not None:
            options["max_deliveries"] = max_deliveries
        if keep is not None:
            options["keep_ms"] = round(parse_duration(keep, "keep") * 1000)
        if history_rows_max is not None:
            options["history_rows_max"] = history_rows_max
        execute(self.redis, store.configure(self.keys, options), queue=self.name)

    def counts(self) -> store.Counts:
        """The queue in numbers: exact gauges and counters, in one look."""
        return execute(self.redis, store.counts(self.keys), queue=self.name)

    def consumer(
        self,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        priority: int = 0,
        mode: Mode = "acquire",
        lease: float | str | timedelta | None = None,
        slots: int = 1,
        renew: bool = True,
    ) -> Consumer:
        """A consumer of this queue: the protocol one step at a time; see `Consumer`."""
        lease_ms = self.settings.lease_ms
        if lease is not None:
            lease_ms = round(parse_duration(lease, "lease") * 1000)
        return Consumer(
            self.redis,
            self.keys,
            name=name,
            jobs=jobs,
            bytes=bytes,
            priority=priority,
            mode=mode,
            lease_ms=lease_ms,
            slots=slots,
            renew=renew,
        )

    def close(self) -> None:
        """Close the connections that this queue opened."""
        if self._owns:
            self.redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = shown_url(self.settings.url) if self.settings.url else "an open connection"
        return f"<Queue {self.name!r} at {where}>"


def when(value: datetime | timedelta | float) -> dict[str, int]:
    """The due time of an `Options`, from a datetime, Unix seconds or a timedelta from now."""
    at_ms, delay_ms = parse_when(value)
    return {"at_ms": at_ms} if at_ms is not None else {"delay_ms": delay_ms or 0}
