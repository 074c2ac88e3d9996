"""What a job enqueues by the same step that acks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ParamSpec, Self

from rqueue.errors import ConfigError, LifecycleError
from rqueue.model.names import check_queue, check_task
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options, at_once, keyed_by_name, refuses
from rqueue.tasks.request import JobRequest

__all__ = ["JobTransaction"]

P = ParamSpec("P")


class JobTransaction:
    """Jobs that follow the one that runs: they are enqueued in its queue by the step that says that
    it is done, all of them, and by no other (Q-73). Where the block raises, or the job fails later,
    or its worker dies, nothing is enqueued; the next attempt begins anew.

    Made by `current_job().transaction()`. pack: of the worker: the job's id, and what is kept of
    it until then. keep: called with what was gathered where the block ends well.
    """

    def __init__(
        self, pack: Callable[[JobRequest], tuple[str, Any]], keep: Callable[[list[Any]], None]
    ) -> None:
        self._pack = pack
        self._keep = keep
        self._kept: list[Any] | None = []
        self._queue = ""

    def at(self, queue: str) -> JobTransaction:
        """Another queue to enqueue in: what goes there leaves the job's queue by the same step,
        through its outbox, and is enqueued there once, a moment later. Raises InvalidName."""
        other = JobTransaction(self._pack, self._keep)
        other._kept, other._queue = self._kept, check_queue(queue)
        return other

    def enqueue(self, task: BoundTask[P, Any] | str, /, *args: Any, **kwargs: Any) -> str:
        """Enqueue one call of a task, given as the task or by name; its id. Raises BadArguments,
        NotEncodable, ConfigError."""
        if not isinstance(task, BoundTask):
            return self.send(task, args, kwargs)
        return self._add(task.request(task.defaults, args, kwargs))

    def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> str:
        """Enqueue one call of a task by name, with options; its id."""
        check_task(task)
        options = keyed_by_name(options, task, args, kwargs or {})
        return self._add(JobRequest(task, args, kwargs or {}, options))

    def _add(self, request: JobRequest) -> str:
        if self._kept is None:
            raise LifecycleError("this transaction is over")
        if name := at_once(request.options):
            raise ConfigError(name, "a job of a transaction cannot be refused alone")
        if refuses(request.options):
            raise ConfigError("on_conflict", "a job that follows another one cannot raise")
        id_, packed = self._pack(request._replace(queue=self._queue))
        self._kept.append(packed)
        return id_

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        kept, self._kept = self._kept, None
        if error is None and kept:
            self._keep(kept)
