"""Tasks: functions that workers find under a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from rqueue.tasks.options import Options
from rqueue.tasks.signature import CallChecker

if TYPE_CHECKING:
    from rqueue.tasks.schedule import Schedule

from rqueue.tasks.bound_task import BoundTask

__all__ = ["AsyncTask", "SyncTask", "Task"]

P = ParamSpec("P")
R = TypeVar("R")
Ack = Literal["late", "early"]


class Task(BoundTask[P, R]):
    """A registered function. `runs` is what a worker applies where a job's own opts are silent.
    `ack`: when a worker acks its jobs, "late", when they have ended, or "early", before they begin
    (Q-24)."""

    __name__: str
    __qualname__: str
    function: Callable[..., Any]
    is_async: bool
    runs: Options
    ack: Ack
    schedules: tuple[Schedule, ...] = ()
    """What enqueues it by itself; () if it is not periodic."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        queue: str,
        calls: Options,
        runs: Options,
        ack: Ack = "late",
    ) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.name = name
        self.queue = queue
        self.defaults = calls
        self.runs = runs
        self.ack = ack
        self.check = CallChecker(name, function)
        # The function's own attributes stay its own: one called `name` would replace ours.
        update_wrapper(cast(Any, self), function, updated=())

    @property
    def place(self) -> str:
        """Where the function is defined, as `file:line`."""
        function = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        if code is None:
            named = function if hasattr(function, "__qualname__") else type(function)
            return f"{named.__module__}.{named.__qualname__}"
        return f"{code.co_filename}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<Task {self.name!r} of queue {self.queue!r}>"


class SyncTask(Task[P, R]):
    """A task that is a plain function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, here and now; dependencies are passed by name. Raises BadArguments
        where one of them is missing."""
        if self.check.provided:
            self.check.plainly(self.function, args, kwargs)
        result: R = self.function(*args, **kwargs)
        return result


class AsyncTask(Task[P, R]):
    """A task that is an `async def` function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function: a coroutine to await, here and now; see `SyncTask`."""
        if self.check.provided:
            self.check.plainly(self.function, args, kwargs)
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine
