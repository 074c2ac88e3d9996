"""Tasks: functions registered under a name, and the typed way to enqueue a call of them.

::

    @task(queue="mail", max_deliveries=5)
    def welcome(user_id: int, *, language: str = "en") -> str: ...

    welcome(7)                                  # a plain call still calls the function
    welcome.enqueue(7, language="fr")           # a wrong argument is a type error, and refused
    welcome.options(priority=9).enqueue(7)
    welcome.enqueue_in(60, 7)                   # in a minute
    await welcome.aenqueue(7)                   # in an async web app

This module knows no Redis: `enqueue` passes a job to an `Enqueuer` (`rqueue.tasks.enqueuer`). The
client layer sets the default one; `.options(sender=queue)` chooses another.

What the decorator says of `retry`, `time_limit`, `soft_time_limit` and `keep` is looked up where
the job runs, so a deploy changes it for jobs that wait already. What `.options` says travels with
the job and wins.
`queue`, `priority`, `ttl`, `group`, `unique`, `limit` and `share` are decided when the job is
enqueued, and so are `max_deliveries` and `max_crashes`, unless the job comes by the task's name
alone: then the worker knows them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.names import check_task
from rqueue.tasks.enqueuer import (
    AsyncEnqueuer,
    Enqueuer,
)
from rqueue.tasks.options import NO_OPTIONS
from rqueue.tasks.other_words import refuse_unknown
from rqueue.tasks.retry import RetryPolicy, check_retry
from rqueue.tasks.schedule import Schedule, check_schedules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from zoneinfo import ZoneInfo

    from rqueue.model.schedule import Missed, Overlap

from rqueue.tasks.bound_task import goes_to
from rqueue.tasks.limits import Limit
from rqueue.tasks.registry import Registry, registry
from rqueue.tasks.shares import Share
from rqueue.tasks.task import Ack, AsyncTask, SyncTask, Task
from rqueue.tasks.unique import Unique

__all__ = ["task"]

P = ParamSpec("P")
R = TypeVar("R")


def _default_name(function: Callable[..., Any]) -> str:
    """`module.qualname`; a program run as `__main__` is called what a worker imports it as."""
    if not inspect.isroutine(function):
        raise ConfigError("name", f"{function!r} is no function: give the task a name=")
    if isinstance(function, FunctionType) and function.__name__ == "<lambda>":
        line = function.__code__.co_firstlineno
        raise ConfigError(
            "name",
            f"the lambda in line {line} of {function.__module__} has no name by which a worker"
            " could find it: write a def, or give the task a name=",
        )
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        if spec is not None:
            module = spec.name.removesuffix(".__main__")
        elif file is not None:
            module = Path(file).stem
        else:
            raise ConfigError(
                "name",
                f"{function.__qualname__} is defined in an interactive session, "
                "which no worker can import: give the task a name=",
            )
    return f"{module}.{function.__qualname__}"


class _Decorator(Protocol):
    # A coroutine is a value too: the first signature that fits is meant.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...


@overload
def task(  # type: ignore[overload-overlap]
    function: Callable[P, Coroutine[Any, Any, R]], /
) -> AsyncTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> SyncTask[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    max_deliveries: int | None = None,
    max_crashes: int | None = None,
    retry: RetryPolicy | None = None,
    time_limit: float | None = None,
    soft_time_limit: float | None = None,
    ttl: float | None = None,
    keep: float | None = None,
    headers: Mapping[str, str] | None = None,
    labels: Mapping[str, str | int | bool] | None = None,
    group: str | None = None,
    unique: Unique | bool | None = None,
    limit: Limit | Sequence[Limit] | None = None,
    share: str | Share | None = None,
    ack: Ack = "late",
    on_commit: bool | str | None = None,
    cron: str | Sequence[str] | None = None,
    every: timedelta | float | str | None = None,
    tz: str | ZoneInfo = "UTC",
    missed: Missed = "last",
    overlap: Overlap = "allow",
    jitter: timedelta | float | str = 0,
    window: timedelta | float | str = "1d",
    schedules: Sequence[Schedule] = (),
    sender: Enqueuer | None = None,
    async_sender: AsyncEnqueuer | None = None,
    registry: Registry = registry,
) -> _Decorator: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    max_deliveries: int | None = None,
    max_crashes: int | None = None,
    retry: RetryPolicy | None = None,
    time_limit: float | None = None,
    soft_time_limit: float | None = None,
    ttl: float | None = None,
    keep: float | None = None,
    headers: Mapping[str, str] | None = None,
    labels: Mapping[str, str | int | bool] | None = None,
    group: str | None = None,
    unique: Unique | bool | None = None,
    limit: Limit | Sequence[Limit] | None = None,
    share: str | Share | None = None,
    ack: Ack = "late",
    on_commit: bool | str | None = None,
    cron: str | Sequence[str] | None = None,
    every: timedelta | float | str | None = None,
    tz: str | ZoneInfo = "UTC",
    missed: Missed = "last",
    overlap: Overlap = "allow",
    jitter: timedelta | float | str = 0,
    window: timedelta | float | str = "1d",
    schedules: Sequence[Schedule] = (),
    sender: Enqueuer | None = None,
    async_sender: AsyncEnqueuer | None = None,
    registry: Registry = registry,
    **unknown: Any,
) -> Any:
    """Register a function as a task: `@task`, or `@task(queue="mail", ...)`.

    `name`: what jobs call it by; default `module.qualname`, so name tasks that may move. `queue`:
    where its calls go, default the sender's, else "default". `priority`: 0 to 9, higher first,
    default 4 (Q-11). `max_deliveries`: attempts in all, default those of `retry`. `max_crashes`:
    those of them that may cost a worker its process. `retry`: a RetryPolicy. `time_limit`: seconds
    after which one attempt is ended with its process; `soft_time_limit`: after which an exception
    is raised in it. `ttl`: seconds from its enqueue in which a job may be delivered (Q-62). `keep`:
    seconds the result is kept. `headers`, `labels`: added to each job. `group`: of all its jobs;
    one of a group is in flight at a time (Q-65). `unique`: of calls that are alike there is one job
    at a time: True, or a `Unique`. `limit`: of those that name it so many run at a time, or in a
    time: a `Concurrency` or `Rate`, or several. `share`: whose turn each of its jobs takes, the
    name of a share or a `Share` of the arguments. `ack`: when a worker acks a job, "late", when it
    has ended, so that none is lost, or "early", before it begins, so that it runs at most once;
    then it is neither tried again nor has it a result (Q-24). `on_commit`:
    whether its enqueues wait for the commit of the database transaction around them, where an
    integration knows of one (`rqueue.contrib.django`). `cron`, `every`, `tz`, `missed`, `overlap`,
    `jitter`, `window`: the task is periodic, called without arguments, as `Queue.schedules.set`
    says it; the schedule has the task's name, and workers of its queue declare it (A-46). With
    neither `cron` nor `every` the task is not periodic. `schedules`: others, with names and
    arguments of their own.
    `sender`, `async_sender`: who stores them.

    Raises ConfigError, InvalidName, TaskAlreadyRegistered.
    """
    if unknown:
        refuse_unknown(unknown, _OPTIONS, "a task")
    if function is not None and not callable(function):
        raise ConfigError(
            "task", f"{shown(function)} is no function; options are named: @task(queue='mail')"
        )
    expect("registry", registry, Registry, "a Registry")
    if ack not in ("late", "early"):
        raise ConfigError("ack", f"{shown(ack)} is neither 'late' nor 'early'")
    where = goes_to(queue, sender, async_sender) or "default"
    if name is not None:
        check_task(name)
    if max_deliveries is None and retry is not None:
        max_deliveries = check_retry(retry).max_deliveries or None
    calls = NO_OPTIONS.merged(
        priority=priority,
        max_deliveries=max_deliveries,
        max_crashes=max_crashes,
        ttl=ttl,
        headers=headers,
        labels=labels,
        group=group,
        on_commit=on_commit,
        unique=unique,
        limit=limit,
        share=share,
    )
    runs = NO_OPTIONS.merged(
        max_deliveries=max_deliveries,
        max_crashes=max_crashes,
        retry=retry,
        time_limit=time_limit,
        soft_time_limit=soft_time_limit,
        keep=keep,
    )

    there = cron is not None or every is not None
    periodic = [
        Schedule(
            cron=cron if there else "@daily",  # so that its other words are checked all the same
            every=every,
            tz=tz,
            missed=missed,
            overlap=overlap,
            jitter=jitter,
            window=window,
        )
    ]
    if not there:
        periodic = []

    def register(function: Callable[..., Any]) -> Task[Any, Any]:
        kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
        made: Task[Any, Any] = kind(
            function, name or _default_name(function), where, calls, runs, ack
        )
        made.check_keys()
        made._enqueuer = sender
        made._async_enqueuer = async_sender
        if periodic or schedules:
            made.schedules = check_schedules(made, periodic, schedules)
        registry.add(made)
        return made

    return register if function is None else register(function)


_OPTIONS = frozenset(inspect.signature(task).parameters) - {"function", "unknown"}
