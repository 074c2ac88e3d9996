"""From a task to what a worker calls for its jobs: the task's own function, with all that is to run
around it, put together once.

From the outside: a context of its own with the variables that came with the job, middleware (the
first outermost), the arguments as they are annotated, dependencies, the function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import Any

from rqueue.errors import ConfigError
from rqueue.tasks.arguments import Reader, readers
from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.dependencies import JOB, Provider, Resource, Source, plan
from rqueue.tasks.middleware import Middleware, has
from rqueue.tasks.task import Task
from rqueue.tasks.ticks import with_tick

__all__ = ["Held", "composed"]

Held = dict[Source, Any]
"""What the process holds for its jobs: values of dependencies of the process, and of lifespans."""

Arguments = tuple[Any, ...]
Call = Callable[[JobContext, Arguments, dict[str, Any]], Any]
Needs = tuple[tuple[str, Source], ...]


def composed(
    task: Task[Any, Any],
    layers: Sequence[Middleware],
    variables: Sequence[ContextVar[str]],
    held: Held,
) -> Callable[..., Any]:
    """What runs a task's jobs: its function itself, where nothing is around it. held: filled before
    the first job. Raises ConfigError."""
    function = with_tick(task.function)
    reader = readers(task.name, function)
    needs = plan(task.name, function)
    around = [one for one in layers if any(has(one, hook) for hook in _AROUND)]
    if reader is None and not needs and not around and not variables:
        return function
    if task.is_async:
        return _async_run(task, around, variables, _async_core(function, reader, needs, held))
    for source in _of_job(needs):
        if isinstance(source, Provider) and source.waits:
            raise ConfigError(
                "Depends",
                f"task '{task.name}' is a plain function, which cannot await '{source.name}': make"
                " the task async, or the dependency one of the process (scope='process')",
            )
    return _sync_run(task, around, variables, _sync_core(function, reader, needs, held))


_AROUND = ("around_job", "around_async_job", "job_scope")


def _lacks(task: Task[Any, Any], one: Middleware, hook: str, other: str) -> ConfigError:
    kind = "async" if task.is_async else "a plain function"
    name = type(one).__name__
    return ConfigError(
        "middleware",
        f"task '{task.name}' is {kind}, and {name} has {other} but no {hook}: give it one, or a"
        " job_scope, which serves both",
    )


# -- plain functions -------------------------------------------------------------------------------


def _sync_run(
    task: Task[Any, Any],
    layers: Sequence[Middleware],
    variables: Sequence[ContextVar[str]],
    call: Call,
) -> Callable[..., Any]:
    for one in reversed(layers):
        if has(one, "job_scope"):
            call = _sync_scope(one.job_scope, call)
        if has(one, "around_job"):
            call = _sync_layer(one.around_job, call)
        elif has(one, "around_async_job") and not has(one, "job_scope"):
            raise _lacks(task, one, "around_job", "around_async_job")
    if variables:
        call = _in_own_context(variables, call)

    @wraps(task.function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(_job(), args, kwargs)

    return run


def _job() -> JobContext:
    job = current_job()
    assert job is not None, "called by a worker"
    return job


def _sync_layer(around: Callable[[JobContext, Callable[[], Any]], Any], inner: Call) -> Call:
    def run(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        return around(job, partial(inner, job, args, kwargs))

    return run


def _sync_scope(scope: Callable[[JobContext], Any], inner: Call) -> Call:
    def run(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        with scope(job):
            return inner(job, args, kwargs)

    return run


def _in_own_context(variables: Sequence[ContextVar[str]], inner: Call) -> Call:
    # what a job sets is gone with it: the next one may have no header of this name
    def run(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        context = copy_context()
        return context.run(_set_and_call, variables, inner, job, args, kwargs)

    return run


def _set_and_call(
    variables: Sequence[ContextVar[str]],
    inner: Call,
    job: JobContext,
    args: Arguments,
    kwargs: dict[str, Any],
) -> Any:
    _set(variables, job.headers)
    return inner(job, args, kwargs)


def _set(variables: Sequence[ContextVar[str]], headers: Mapping[str, str]) -> None:
    for variable in variables:
        if variable.name in headers:
            variable.set(headers[variable.name])


def _sync_core(
    function: Callable[..., Any], reader: Reader | None, needs: Needs, held: Held
) -> Call:
    if not needs:

        def read_and_call(_: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
            if reader is not None:
                made, kwargs = reader(args, kwargs)
                return function(*made, **kwargs)
            return function(*args, **kwargs)

        return read_and_call

    def provide_and_call(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        made, named = (args, kwargs) if reader is None else reader(args, kwargs)
        with ExitStack() as stack:
            found: Held = {}
            given = {name: _value(source, job, held, found, stack) for name, source in needs}
            return function(*made, **named, **given)

    return provide_and_call


def _value(source: Source, job: JobContext, held: Held, found: Held, stack: ExitStack) -> Any:
    """The value of a dependency for this job. found: those that it has already."""
    if source is JOB:
        return job
    if source in held:
        return held[source]
    assert isinstance(source, Provider)
    if source.use_cache and source in found:
        return found[source]
    given = {name: _value(inner, job, held, found, stack) for name, inner in source.needs}
    if source.kind == "gen":
        value = stack.enter_context(contextmanager(source.call)(**given))
    else:
        value = source.call(**given)
    if source.use_cache:
        found[source] = value
    return value


# -- async def functions ---------------------------------------------------------------------------


def _async_run(
    task: Task[Any, Any],
    layers: Sequence[Middleware],
    variables: Sequence[ContextVar[str]],
    call: Call,
) -> Callable[..., Any]:
    for one in reversed(layers):
        if has(one, "job_scope"):
            call = _async_scope(one.job_scope, call)
        if has(one, "around_async_job"):
            call = _sync_layer(one.around_async_job, call)
        elif has(one, "around_job") and not has(one, "job_scope"):
            raise _lacks(task, one, "around_async_job", "around_job")

    @wraps(task.function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        job = _job()
        if variables:  # each async job has a context of its own
            _set(variables, job.headers)
        return await call(job, args, kwargs)

    return run


def _async_scope(scope: Callable[[JobContext], Any], inner: Call) -> Call:
    async def run(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        with scope(job):
            return await inner(job, args, kwargs)

    return run


def _async_core(
    function: Callable[..., Awaitable[Any]], reader: Reader | None, needs: Needs, held: Held
) -> Call:
    async def call(job: JobContext, args: Arguments, kwargs: dict[str, Any]) -> Any:
        made, named = (args, kwargs) if reader is None else reader(args, kwargs)
        if not needs:
            return await function(*made, **named)
        async with AsyncExitStack() as stack:
            found: Held = {}
            given = {
                name: await async_value(source, job, held, found, stack) for name, source in needs
            }
            return await function(*made, **named, **given)

    return call


async def async_value(
    source: Source, job: JobContext | None, held: Held, found: Held, stack: AsyncExitStack
) -> Any:
    """As `_value`, for dependencies that may have to be awaited."""
    if source is JOB:
        return job
    if source in held:
        return held[source]
    assert isinstance(source, Provider)
    if source.use_cache and source in found:
        return found[source]
    given = {
        name: await async_value(inner, job, held, found, stack) for name, inner in source.needs
    }
    if source.kind == "asyncgen":
        value = await stack.enter_async_context(asynccontextmanager(source.call)(**given))
    elif source.kind == "gen":
        value = stack.enter_context(contextmanager(source.call)(**given))
    else:
        value = source.call(**given)
        if source.kind == "async":
            value = await value
    if source.use_cache:
        found[source] = value
    return value


# -- what the process holds ------------------------------------------------------------------------


def held_sources(needs: Needs) -> Iterator[Provider | Resource]:
    """What the process is to hold for these, each after what it needs itself."""
    for _, source in needs:
        if isinstance(source, Provider):
            yield from held_sources(source.needs)
            if source.scope == "process":
                yield source
        elif isinstance(source, Resource):
            yield source


def _of_job(needs: Needs) -> Iterator[Source]:
    for _, source in needs:
        if isinstance(source, Provider) and source.scope == "job":
            yield source
            yield from _of_job(source.needs)
