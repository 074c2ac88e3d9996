"""`Depends`: how a parameter of a task, or of a dependency, asks for more than its caller gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.tick import Tick

__all__ = ["Depends", "Marker", "Scope", "annotation_of", "marker_of", "tick_parameter"]

Scope = Literal["job", "process"]


@dataclass(frozen=True, slots=True)
class Marker:
    """What `Depends` leaves in a signature."""

    dependency: Callable[..., Any] | None
    use_cache: bool = True
    scope: Scope = "job"


def Depends(
    dependency: Callable[..., Any] | None = None, *, use_cache: bool = True, scope: Scope = "job"
) -> Any:
    """Ask for what `dependency` returns or yields: the default of a parameter that no caller gives.

    None: what a lifespan gave, by the parameter's type. use_cache: one value for all that ask for
    it in one job. scope: "job", or "process": made when the worker begins, ended when it ends.
    Raises ConfigError.
    """
    if dependency is not None and not callable(dependency):
        raise ConfigError("Depends", f"{shown(dependency)} is no function")
    if scope not in ("job", "process"):
        raise ConfigError("Depends", f"scope {shown(scope)} is neither 'job' nor 'process'")
    return Marker(dependency, use_cache, scope)


def annotation_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """A parameter's annotation as it is meant; `inspect.Parameter.empty` where there is none, or
    where its text names nothing that is known here."""
    found = parameter.annotation
    if not isinstance(found, str):
        return found
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return eval(found, dict(names))  # as typing.get_type_hints does
    except Exception:  # a name for type checkers alone may raise anything
        return parameter.empty


def marker_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """The `Depends` of a parameter, ours or FastAPI's; None where it is an argument."""
    if _is_marker(parameter.default):
        return parameter.default
    text = parameter.annotation
    if text is parameter.empty or (isinstance(text, str) and text in _PLAIN):
        return None
    annotation = annotation_of(parameter, function)
    if get_origin(annotation) is Annotated:
        for found in get_args(annotation)[1:]:
            if _is_marker(found):
                return found
    return None


def tick_parameter(function: Callable[..., Any]) -> str:
    """The name of the parameter whose annotation is `Tick`, or `Tick | None`; "" where there is
    none."""
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if annotation is Tick or Tick in get_args(annotation):
            return name
        if isinstance(annotation, str):
            words = annotation.replace("Optional[", "").replace("]", "").split("|")
            if any(word.strip().rpartition(".")[2] == "Tick" for word in words):
                return name
    return ""


_PLAIN = frozenset(("int", "str", "float", "bool", "None", "list", "dict", "list[str]", "Any"))
"""Annotations, as text, that need no look."""


def _is_marker(value: object) -> bool:
    kind = type(value)
    return kind is Marker or (hasattr(kind, "__mro__") and _of_fastapi(kind))


def _of_fastapi(kind: type) -> bool:
    return kind.__name__ in ("Depends", "Security") and kind.__module__ == "fastapi.params"
