"""What an application runs around its jobs and enqueues: a class of hooks, all optional."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from rqueue.errors import ConfigError
from rqueue.model.expect import misfit, shown
from rqueue.tasks.context import JobContext
from rqueue.tasks.request import JobRequest

__all__ = ["HOOKS", "Middleware", "WorkerInfo", "has"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The worker process that begins or ends: its name, its queues, and the names of the tasks that
    it runs."""

    name: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]


class Middleware:
    """Hooks around jobs and enqueues, of which a subclass overrides those it needs; what no class
    overrides is never called. Given to `rqueue.App(middleware=[...])`; of several the first is the
    outermost.

    What raises in a hook around a job is the job's failure; what raises in `on_retry` or `on_dead`
    is logged, and changes nothing. `Retry`, `Snooze` and `Reject` pass through the hooks around a
    job as the exceptions that they are.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in vars(cls).items():
            if name in HOOKS:
                _check_kind(cls, name, value)
                _check_arguments(cls, name, value)
            elif name.startswith(("around_", "on_", "before_", "after_")) and callable(value):
                near = get_close_matches(name, HOOKS, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(HOOKS)}"
                raise ConfigError("middleware", f"{cls.__name__}.{name} is no hook; {hint}")

    def around_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        """Around the attempt of a job whose task is a plain function: `call()` runs it, and what is
        returned is its result. Runs where the job does."""
        return call()

    async def around_async_job(self, job: JobContext, call: Callable[[], Awaitable[Any]]) -> Any:
        """Around the attempt of a job whose task is an `async def` function."""
        return await call()

    def job_scope(self, job: JobContext) -> AbstractContextManager[Any]:
        """A context manager that is entered for each attempt, of tasks of both kinds: for what has
        no need to wait, or to change a result."""
        raise NotImplementedError

    def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
        """Around the making of a job, before it is sent: `call(request)` makes it, and what that
        returns is to be returned; it has the job's `id`. The request may be another one
        (`request.with_headers(...)`). What raises is raised where the job is enqueued. It does not
        wait for Redis, and serves the sync and the asyncio client alike."""
        return call(request)

    def startup(self, worker: WorkerInfo) -> Any:
        """A worker process has imported the application, and takes its first job next. May be an
        `async def` function, which runs on the loop of the async jobs."""

    def shutdown(self, worker: WorkerInfo) -> Any:
        """A worker process has settled its last job. May be an `async def` function."""

    def on_retry(self, job: JobContext, error: BaseException, delay: float) -> None:
        """An attempt failed and the job is tried again in `delay` seconds. Not called where an
        attempt cost its worker the process."""

    def on_dead(self, job: JobContext, error: BaseException) -> None:
        """A job failed for good, and is a dead letter now. Not called where that is decided without
        a worker: a crash, an expiry."""


HOOKS = (
    "around_job",
    "around_async_job",
    "job_scope",
    "around_enqueue",
    "startup",
    "shutdown",
    "on_retry",
    "on_dead",
)
"""The names of the hooks."""


def has(middleware: Middleware, hook: str) -> bool:
    """Whether a middleware has a hook of its own."""
    return getattr(type(middleware), hook) is not getattr(Middleware, hook)


def _check_kind(cls: type[Middleware], name: str, value: object) -> None:
    wait = inspect.iscoroutinefunction(value)
    said = f"{cls.__name__}.{name}"
    if name == "around_job" and wait:
        raise ConfigError("middleware", f"{said} is async: around async jobs is around_async_job")
    if name == "around_async_job" and not wait:
        raise ConfigError("middleware", f"{said} is no 'async def' function")
    if wait and name not in ("around_async_job", "startup", "shutdown"):
        raise ConfigError("middleware", f"{said} is async: nobody could await it there")


def _check_arguments(cls: type[Middleware], name: str, value: object) -> None:
    """A hook that does not take what it is given would fail each job instead."""
    said = f"{cls.__name__}.{name}"
    hook = getattr(cls, name)
    if not callable(hook):
        raise ConfigError("middleware", f"{said} is {shown(value)}, which is no function")
    ours = list(inspect.signature(getattr(Middleware, name)).parameters)
    given = ours if inspect.isfunction(value) else ours[1:]
    if problem := misfit(hook, given):
        raise ConfigError("middleware", f"{said}: {problem}; write def {name}({', '.join(ours)})")
