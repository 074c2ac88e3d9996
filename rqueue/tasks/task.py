"""Tasks: functions registered under a name, and the typed way to enqueue a call of them.

::

    @task(queue="mail", max_deliveries=5)
    def welcome(user_id: int, *, language: str = "en") -> str: ...

    welcome(7)                                  # a plain call still calls the function
    welcome.enqueue(7, language="fr")           # a wrong argument is a type error, and refused
    welcome.options(priority=9).enqueue(7)
    welcome.delay(60, 7)                        # in a minute
    await welcome.aenqueue(7)                   # in an async web app

This module knows no Redis: `enqueue` passes a job to an `Enqueuer` (`rqueue.tasks.enqueuer`). The
client layer sets the default one; `.options(sender=queue)` chooses another.

What the decorator says of `retry`, `limit`, `soft_limit` and `keep` is looked up where the job
runs, so a deploy changes it for jobs that wait already. What `.options` says travels with the job
and wins.
`queue` and `priority` are decided when the job is enqueued, and so are `max_deliveries` and
`max_crashes`, unless the job comes by the task's name alone: then the worker knows them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from rqueue.errors import BadArguments, ConfigError, TaskAlreadyRegistered, UnknownTask
from rqueue.model.expect import expect, expect_number, shown
from rqueue.model.names import check_queue, check_task
from rqueue.model.times import parse_when
from rqueue.tasks.enqueuer import (
    AsyncEnqueuer,
    Enqueuer,
    default_async_enqueuer,
    default_enqueuer,
)
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.retry import RetryPolicy, check_retry
from rqueue.tasks.signature import CallChecker

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = [
    "AsyncTask",
    "BoundTask",
    "Registry",
    "SyncTask",
    "Task",
    "registry",
    "task",
]

P = ParamSpec("P")
R = TypeVar("R")


# -- enqueueing ------------------------------------------------------------------------------------


class BoundTask(Generic[P, R]):
    """A task with the options of its calls: everything that enqueues it."""

    name: str
    queue: str
    defaults: Options
    check: CallChecker
    """Raises BadArguments unless the function takes the arguments that it is called with."""
    _enqueuer: Enqueuer | None = None
    _async_enqueuer: AsyncEnqueuer | None = None

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Enqueue one call. Raises BadArguments, NotEncodable, and what the client raises."""
        return self._send(self.defaults, args, kwargs)

    def enqueue_at(
        self, when: datetime | timedelta | float, /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]:
        """Enqueue one call for a time: aware datetime, Unix seconds, timedelta from now (A-01)."""
        return self._send(self._due(when), args, kwargs)

    def delay(self, seconds: float, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Enqueue one call that becomes ready in `seconds`, by Redis's clock."""
        due = self._due(_delay(seconds))
        try:
            return self._send(due, args, kwargs)
        except BadArguments as error:
            raise _without_seconds(error, seconds, args, kwargs) from None

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R]:
        """`enqueue` for asyncio."""
        return await self._asend(self.defaults, args, kwargs)

    async def aenqueue_at(
        self, when: datetime | timedelta | float, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]:
        """`enqueue_at` for asyncio."""
        return await self._asend(self._due(when), args, kwargs)

    async def adelay(
        self, seconds: float, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]:
        """`delay` for asyncio."""
        due = self._due(_delay(seconds))
        try:
            return await self._asend(due, args, kwargs)
        except BadArguments as error:
            raise _without_seconds(error, seconds, args, kwargs) from None

    def options(
        self,
        *,
        queue: str | None = None,
        id: str | None = None,
        priority: int | None = None,
        at: datetime | timedelta | float | None = None,
        max_deliveries: int | None = None,
        max_crashes: int | None = None,
        retry: RetryPolicy | None = None,
        limit: float | None = None,
        soft_limit: float | None = None,
        keep: float | None = None,
        headers: Mapping[str, str] | None = None,
        labels: Mapping[str, str | int | bool] | None = None,
        immediate: bool | None = None,
        sender: Enqueuer | None = None,
        async_sender: AsyncEnqueuer | None = None,
    ) -> BoundTask[P, R]:
        """The same task with other options for its calls, which take the same arguments.

        `limit`, `soft_limit`, `keep` are seconds; see `rqueue.tasks.options.Options` for all of
        them. Headers and labels are added to those that are there. With a `sender` the calls go to
        its queue, unless `queue` says otherwise. Raises ConfigError and InvalidName.
        """
        bound: BoundTask[P, R] = BoundTask()
        bound.name = self.name
        bound.queue = _goes_to(queue, sender, async_sender) or self.queue
        bound.check = self.check
        bound._enqueuer = self._enqueuer if sender is None else sender
        bound._async_enqueuer = self._async_enqueuer if async_sender is None else async_sender
        if max_deliveries is None and retry is not None:
            max_deliveries = check_retry(retry).max_deliveries or None
        due = parse_when(at, "at") if at is not None else None
        bound.defaults = self.defaults.merged(
            id=id,
            priority=priority,
            at_ms=due.at_ms if due else None,
            delay_ms=due.delay_ms if due else None,
            max_deliveries=max_deliveries,
            max_crashes=max_crashes,
            retry=retry,
            limit=limit,
            soft_limit=soft_limit,
            keep=keep,
            headers=headers,
            labels=labels,
            immediate=immediate,
        )
        return bound

    def _due(self, when: datetime | timedelta | float) -> Options:
        at_ms, delay_ms = parse_when(when)
        return replace(self.defaults, at_ms=at_ms, delay_ms=delay_ms)

    def _send(self, options: Options, args: Any, kwargs: Any) -> JobHandle[R]:
        check = self.check
        check(args, kwargs)
        sender = self._enqueuer or default_enqueuer(self.name)
        return sender.enqueue_task(self.queue, self.name, args, kwargs, options, check.positional)

    async def _asend(self, options: Options, args: Any, kwargs: Any) -> AsyncJobHandle[R]:
        check = self.check
        check(args, kwargs)
        sender = self._async_enqueuer or default_async_enqueuer(self.name)
        return await sender.enqueue_task(
            self.queue, self.name, args, kwargs, options, check.positional
        )


def _without_seconds(
    error: BadArguments, seconds: float, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> BadArguments:
    """The error of a delayed call; with a hint where its first argument may stand for seconds."""
    if args or kwargs:
        return error
    hint = f"delay takes the seconds first; did you mean enqueue({seconds!r})?"
    return BadArguments(error.task, f"{error.problem} ({hint})", error.signature)


def _delay(seconds: float) -> timedelta:
    expect_number("delay", seconds, "a number of seconds; the task's arguments come after it")
    return timedelta(seconds=seconds)


def _goes_to(queue: str | None, sender: object, async_sender: object) -> str | None:
    """The queue that these options name, or None. Raises ConfigError and InvalidName."""
    for name, who in (("sender", sender), ("async_sender", async_sender)):
        if who is not None and not hasattr(who, "enqueue_task"):
            kind = "a Queue or a putter" if name == "sender" else "an AsyncQueue or its putter"
            raise ConfigError(name, f"{shown(who)} is not {kind}")
    if queue is not None:
        return check_queue(queue)
    chosen = sender if sender is not None else async_sender
    return getattr(chosen, "target", None) or None


class Task(BoundTask[P, R]):
    """A registered function. `runs` is what a worker applies where a job's own opts are silent."""

    __name__: str
    __qualname__: str
    function: Callable[..., Any]
    is_async: bool
    runs: Options

    def __init__(
        self, function: Callable[..., Any], name: str, queue: str, calls: Options, runs: Options
    ) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.name = name
        self.queue = queue
        self.defaults = calls
        self.runs = runs
        self.check = CallChecker(name, function)
        # The function's own attributes stay its own: one called `name` would replace ours.
        update_wrapper(cast(Any, self), function, updated=())

    @property
    def place(self) -> str:
        """Where the function is defined, as `file:line`."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        if code is None:
            return f"{self.function.__module__}.{self.function.__qualname__}"
        return f"{code.co_filename}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<Task {self.name!r} of queue {self.queue!r}>"


class SyncTask(Task[P, R]):
    """A task that is a plain function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, here and now."""
        result: R = self.function(*args, **kwargs)
        return result


class AsyncTask(Task[P, R]):
    """A task that is an `async def` function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function: a coroutine to await, here and now."""
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine


# -- the registry ----------------------------------------------------------------------------------


class Registry:
    """Tasks by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}

    def add(self, task: Task[Any, Any]) -> None:
        """Register a task. Raises TaskAlreadyRegistered when another function has its name.

        The same function of the same file again (a module imported under two names, a reload) takes
        the earlier one's place.
        """
        other = self._tasks.get(task.name)
        if other is not None and other.place != task.place:
            raise TaskAlreadyRegistered(task.name, other.place, task.place)
        self._tasks[task.name] = task

    def get(self, name: str) -> Task[Any, Any]:
        """The task of this name. Raises UnknownTask, which names the nearest ones."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, get_close_matches(name, self._tasks, 2)) from None

    def find(self, name: str) -> Task[Any, Any] | None:
        """The task of this name, or None."""
        return self._tasks.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any]]:
        return iter(list(self._tasks.values()))

    def __len__(self) -> int:
        return len(self._tasks)


registry = Registry()
"""Where `@task` registers, unless it is given another."""


def _default_name(function: Callable[..., Any]) -> str:
    """`module.qualname`; a program run as `__main__` is called what a worker imports it as."""
    if not inspect.isroutine(function):
        raise ConfigError("name", f"{function!r} is no function: give the task a name=")
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
    limit: float | None = None,
    soft_limit: float | None = None,
    keep: float | None = None,
    headers: Mapping[str, str] | None = None,
    labels: Mapping[str, str | int | bool] | None = None,
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
    limit: float | None = None,
    soft_limit: float | None = None,
    keep: float | None = None,
    headers: Mapping[str, str] | None = None,
    labels: Mapping[str, str | int | bool] | None = None,
    sender: Enqueuer | None = None,
    async_sender: AsyncEnqueuer | None = None,
    registry: Registry = registry,
) -> Any:
    """Register a function as a task: `@task`, or `@task(queue="mail", ...)`.

    `name`: what jobs call it by; default `module.qualname`, so name tasks that may move. `queue`:
    where its calls go, default the sender's, else "default". `priority`: 0 to 9, higher first,
    default 4 (Q-11). `max_deliveries`: attempts in all, default those of `retry`. `max_crashes`:
    those of them that may cost a worker its process. `retry`: a RetryPolicy. `limit`, `soft_limit`:
    seconds one attempt may take, hard and soft. `keep`: seconds the result is kept. `headers`,
    `labels`: added to each job. `sender`, `async_sender`: who stores them.

    Raises ConfigError, InvalidName, TaskAlreadyRegistered.
    """
    if function is not None and not callable(function):
        raise ConfigError(
            "task", f"{shown(function)} is no function; options are named: @task(queue='mail')"
        )
    expect("registry", registry, Registry, "a Registry")
    where = _goes_to(queue, sender, async_sender) or "default"
    if name is not None:
        check_task(name)
    if max_deliveries is None and retry is not None:
        max_deliveries = check_retry(retry).max_deliveries or None
    calls = NO_OPTIONS.merged(
        priority=priority,
        max_deliveries=max_deliveries,
        max_crashes=max_crashes,
        headers=headers,
        labels=labels,
    )
    runs = NO_OPTIONS.merged(
        max_deliveries=max_deliveries,
        max_crashes=max_crashes,
        retry=retry,
        limit=limit,
        soft_limit=soft_limit,
        keep=keep,
    )

    def register(function: Callable[..., Any]) -> Task[Any, Any]:
        kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
        made: Task[Any, Any] = kind(function, name or _default_name(function), where, calls, runs)
        made._enqueuer = sender
        made._async_enqueuer = async_sender
        registry.add(made)
        return made

    return register if function is None else register(function)
