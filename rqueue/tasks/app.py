"""What a process does around all its jobs and enqueues: middleware, context variables, lifespans.

Nothing is looked up while a job runs or is enqueued: a worker composes each task with it once, when
it has loaded the application, and an enqueue looks at one tuple, which is empty without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, misfit, shown
from rqueue.tasks.middleware import Middleware, WorkerInfo, has
from rqueue.tasks.request import JobRequest

__all__ = ["App", "Lifespan", "apps", "around_enqueues", "context_variables", "middleware"]

T = TypeVar("T")
Lifespan = Callable[[WorkerInfo], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
Around = Callable[[JobRequest, Callable[[JobRequest], Any]], Any]

_UNSET: Any = object()


class App:
    """What this process runs around its jobs and enqueues, from now on.

    `middleware`: the first is the outermost. `context`: ContextVars whose text travels as headers
    of the same names with what is enqueued, and which are set around the job. `lifespan`: a context
    manager, sync or async, around the life of a worker process; what it yields (an object, or a
    tuple of them) is given to tasks that ask for it with `Depends()`. Several apps add up, in the
    order in which they are made, as an application and its integrations do.

    Used as a context manager, it ends with the block; `remove` ends it too: for tests.
    Raises ConfigError.
    """

    def __init__(
        self,
        *,
        middleware: Sequence[Middleware] = (),
        context: Sequence[ContextVar[str]] = (),
        lifespan: Lifespan | None = None,
    ) -> None:
        expect("middleware", middleware, Sequence, "a list of Middleware")
        for one in middleware:
            if isinstance(one, type) and issubclass(one, Middleware):
                raise ConfigError("middleware", f"{one.__name__} is a class; {one.__name__}()")
            expect("middleware", one, Middleware, "a Middleware")
        expect("context", context, Sequence, "a list of ContextVars")
        for variable in context:
            if not isinstance(variable, ContextVar):
                raise ConfigError("context", f"{shown(variable)} is no ContextVar; pass it itself")
        if lifespan is not None and not callable(lifespan):
            raise ConfigError("lifespan", f"{shown(lifespan)} is no context manager's function")
        if lifespan is not None and (problem := misfit(lifespan, ["worker"])):
            raise ConfigError("lifespan", f"{problem}; write def lifespan(worker)")
        self.middleware = tuple(middleware)
        self.context = tuple(context)
        self.lifespan = lifespan
        _apps.append(self)
        _compose()

    def remove(self) -> None:
        """It is no part of the process any more; what a worker has composed keeps it."""
        if self in _apps:
            _apps.remove(self)
            _compose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


_apps: list[App] = []

around_enqueues: tuple[Around, ...] = ()
"""What runs around the making of a job, the outermost first. Looked at by each enqueue."""


def apps() -> tuple[App, ...]:
    """The apps of this process, in the order in which they were made."""
    return tuple(_apps)


def middleware() -> Iterator[Middleware]:
    """The middleware of all apps, the outermost first."""
    for app in _apps:
        yield from app.middleware


def context_variables() -> tuple[ContextVar[str], ...]:
    """The context variables that travel with jobs, each once."""
    return tuple(dict.fromkeys(variable for app in _apps for variable in app.context))


def make(request: JobRequest, pack: Callable[[JobRequest], T]) -> T:
    """Make a job, with all that is to run around it."""
    call: Callable[[JobRequest], Any] = pack
    for around in reversed(around_enqueues):
        call = partial(_through, around, call)
    made: T = call(request)
    return made


def _through(around: Around, call: Callable[[JobRequest], Any], request: JobRequest) -> Any:
    made = around(request, call)
    if made is None:
        name = getattr(around, "__qualname__", repr(around))
        raise ConfigError("middleware", f"{name} returned nothing; it returns call(request)")
    return made


def _compose() -> None:
    global around_enqueues
    layers: list[Around] = []
    if context := context_variables():
        layers.append(partial(_with_context, context))
    layers += [one.around_enqueue for one in middleware() if has(one, "around_enqueue")]
    around_enqueues = tuple(layers)


def _with_context(
    variables: Sequence[ContextVar[str]],
    request: JobRequest,
    call: Callable[[JobRequest], Any],
) -> Any:
    """Make a job that carries the values of context variables; headers that it has already win."""
    there = request.options.headers
    found: dict[str, str] = {}
    for variable in variables:
        value = variable.get(_UNSET)
        if value is _UNSET or value is None or variable.name in there:
            continue
        if type(value) is not str:
            raise ConfigError("context", f"{variable.name} is {shown(value)}: a header is text")
        found[variable.name] = value
    return call(request.with_headers(found) if found else request)
