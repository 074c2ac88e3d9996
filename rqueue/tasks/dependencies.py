"""What a task asks for besides its arguments: `db: Pool = Depends(pool)`.

A dependency is a function whose value is made where the job runs: for each job, or once for the
worker process. One that yields goes on when the job has returned or raised, before the job is
settled, so that a commit which fails there fails the job. Without a function it is what a lifespan
gave, found by its type. Dependencies may depend on others, and on the job (`job: JobContext`). They
are resolved to a plan when a worker loads the application; what cannot be is refused there.

FastAPI's `Depends` objects are taken as ours are, as defaults or in `Annotated`, where what they
ask for is no part of a request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.tasks.context import JobContext
from rqueue.tasks.depends import Marker, Scope, annotation_of, marker_of

__all__ = ["JOB", "Provider", "Resource", "Source", "plan"]


@dataclass(frozen=True, slots=True)
class Resource:
    """What a lifespan gave, by its type; asked for by the parameter `place`."""

    type: type
    place: str


class _Job:
    """The job that runs."""


JOB = _Job()


@dataclass(frozen=True, slots=True)
class Provider:
    """A dependency, resolved. kind: what its function is, as `inspect` says it; it yields where
    that ends in gen."""

    call: Callable[..., Any]
    kind: Literal["plain", "gen", "async", "asyncgen"]
    scope: Scope
    use_cache: bool
    needs: tuple[tuple[str, Source], ...] = field(compare=False)

    @property
    def name(self) -> str:
        """The name of its function."""
        return getattr(self.call, "__qualname__", repr(self.call))

    @property
    def waits(self) -> bool:
        """Whether it has to be awaited."""
        return self.kind.startswith("async")


Source = Provider | Resource | _Job


def plan(task: str, function: Callable[..., Any]) -> tuple[tuple[str, Source], ...]:
    """The dependencies of a task's function, by parameter. Raises ConfigError."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if marker_of(parameter, function) is not None:
            found.append((name, _source(task, function, parameter, ())))
    return tuple(found)


def _source(
    task: str,
    function: Callable[..., Any],
    parameter: inspect.Parameter,
    above: tuple[Callable[..., Any], ...],
) -> Source:
    marker = marker_of(parameter, function)
    place = f"'{parameter.name}' of {_name(function)}"
    wanted = _bare(annotation_of(parameter, function))
    call = marker.dependency
    if call is None and type(marker) is Marker:
        if not isinstance(wanted, type) or wanted in (object, inspect.Parameter.empty):
            _refuse(task, f"{place} asks for a resource, and its type is not known here")
        return Resource(wanted, place)
    if call is None:
        call = wanted  # FastAPI: the class itself
    if not callable(call):
        _refuse(task, f"{place} has no function to call")
    if call in above:
        _refuse(task, f"{_name(call)} depends on itself")
    scope: Scope = "process" if getattr(marker, "scope", "job") == "process" else "job"
    needs = []
    for name, inner in _parameters(call).items():
        source = _inner(task, call, inner, (*above, call))
        if source is None:
            continue
        if scope == "process" and (
            source is JOB or (isinstance(source, Provider) and source.scope == "job")
        ):
            what = "the job" if source is JOB else _name(getattr(source, "call", None))
            _refuse(task, f"{_name(call)} is of the process, and depends on {what}, of one job")
        needs.append((name, source))
    return Provider(call, _kind(call), scope, bool(marker.use_cache), tuple(needs))


def _inner(
    task: str,
    call: Callable[..., Any],
    parameter: inspect.Parameter,
    above: tuple[Callable[..., Any], ...],
) -> Source | None:
    """What a parameter of a dependency is given; None for its default."""
    if marker_of(parameter, call) is not None:
        return _source(task, call, parameter, above)
    wanted = _bare(annotation_of(parameter, call))
    if wanted is JobContext:
        return JOB
    module = getattr(wanted, "__module__", "").partition(".")[0]
    if isinstance(wanted, type) and module in ("fastapi", "starlette"):
        said = f"{_name(call)} needs the {wanted.__name__} of a request ('{parameter.name}')"
        _refuse(task, f"{said}, and a job has none")
    if parameter.default is not parameter.empty:
        of_request = type(parameter.default).__module__.partition(".")[0] == "fastapi"
        if of_request:
            _refuse(task, f"'{parameter.name}' of {_name(call)} comes from a request")
        return None
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    _refuse(task, f"nobody gives '{parameter.name}' of {_name(call)}: it has no Depends")


def _parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(call).parameters)
    except ValueError:  # of C
        return {}


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _kind(call: Callable[..., Any]) -> Literal["plain", "gen", "async", "asyncgen"]:
    function = call if inspect.isroutine(call) or isinstance(call, type) else type(call).__call__
    if inspect.isasyncgenfunction(function):
        return "asyncgen"
    if inspect.isgeneratorfunction(function):
        return "gen"
    return "async" if inspect.iscoroutinefunction(function) else "plain"


def _name(call: object) -> str:
    return str(getattr(call, "__qualname__", None) or shown(call))


def _refuse(task: str, said: str) -> NoReturn:
    raise ConfigError("Depends", f"task '{task}': {said}")
