"""Arguments by annotation: which of a task's parameters are more than JSON, and what reads them.

A parameter that is annotated as a pydantic model, a dataclass, a msgspec Struct, a datetime, date,
time, timedelta, UUID, Decimal or Enum, or as something that contains one, gets its value as that;
all others get the JSON that came, and cost nothing. What reads is msgspec or pydantic, whichever is
there and knows the type. Looked at once, when a worker loads the application.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

from rqueue.errors import BadArguments, ConfigError
from rqueue.tasks.depends import annotation_of, marker_of
from rqueue.tasks.ticks import tick_parameter

__all__ = ["InvalidArguments", "Reader", "readers"]

Read = Callable[[Any], Any]

_SCALARS = (datetime, date, time, timedelta, UUID, Decimal, Enum)
_CONSTRAINTS = ("pydantic", "annotated_types", "msgspec")


class InvalidArguments(BadArguments):
    """Arguments that are not what the task's annotations say: the worker's, not the job's own."""


class Reader:
    """Makes a task's arguments what its annotations say.

    by_position, by_name: what reads a parameter. rest, others: of `*args` and `**kwargs`. refused:
    parameters that no caller gives, since dependencies do.
    """

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        signature = inspect.signature(function)
        self._positions: list[tuple[str, Read | None]] = []
        self._names: dict[str, Read] = {}
        self._rest: tuple[str, Read] | None = None
        self._others: Read | None = None
        self._given: set[str] = set()
        shown: list[inspect.Parameter] = []
        tick = tick_parameter(function)
        for parameter in signature.parameters.values():
            if marker_of(parameter, function) is not None or parameter.name == tick:
                self._given.add(parameter.name)
                continue
            shown.append(parameter)
            read = _read(task, parameter, annotation_of(parameter, function))
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = (parameter.name, read) if read else None
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                self._others = read
                continue
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self._positions.append((parameter.name, read))
            if read is not None and parameter.kind is not parameter.POSITIONAL_ONLY:
                self._names[parameter.name] = read
        self.needed = bool(
            self._names
            or self._rest
            or self._others
            or self._given
            or any(read for _, read in self._positions)
        )
        self._signature = str(signature.replace(parameters=shown))

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as they are annotated. Raises InvalidArguments, with the path of what is
        wrong."""
        made = list(args)
        for index, (name, read) in enumerate(self._positions[: len(made)]):
            if read is not None:
                made[index] = self._value(name, read, made[index])
        if self._rest is not None:
            name, rest = self._rest
            for index in range(len(self._positions), len(made)):
                path = f"{name}[{index - len(self._positions)}]"
                made[index] = self._value(path, rest, made[index])
        if not kwargs:
            return made, kwargs
        named: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in self._given:
                said = f"'{name}' is a dependency, which no caller gives"
                raise InvalidArguments(self._task, said, self._signature)
            reader = self._names.get(name) or (None if self._has(name) else self._others)
            named[name] = value if reader is None else self._value(name, reader, value)
        return made, named

    def _has(self, name: str) -> bool:
        return any(name == known for known, _ in self._positions)

    def _value(self, name: str, read: Read, value: Any) -> Any:
        try:
            return read(value)
        except _Misread as error:
            raise InvalidArguments(self._task, f"{name}{error}", self._signature) from None


def readers(task: str, function: Callable[..., Any]) -> Reader | None:
    """What reads a task's arguments; None where they are plain JSON. Raises ConfigError."""
    reader = Reader(task, function)
    return reader if reader.needed else None


class _Misread(Exception):
    """A value that is not of its type: the path inside it, and what is wrong."""


def _read(task: str, parameter: inspect.Parameter, annotation: Any) -> Read | None:
    """What reads values of this annotation; None where they are JSON."""
    kinds = set(_kinds(annotation))
    if not kinds:
        return None
    place = f"parameter '{parameter.name}' of task '{task}'"
    if "pydantic" not in kinds and (msgspec := _library("msgspec")) is not None:
        try:
            msgspec.json.Decoder(annotation)
            return _with_msgspec(msgspec, annotation)
        except TypeError as error:  # a type that it does not know, as an Enum of mixed values
            if "msgspec" in kinds:
                raise ConfigError("task", f"{place} cannot be read: {error}") from None
    if "msgspec" not in kinds and (pydantic := _library("pydantic")) is not None:
        try:
            return partial(_with_pydantic, pydantic.TypeAdapter(annotation), pydantic)
        except Exception as error:  # its own, of many kinds
            said = str(error).partition("\n")[0]
            raise ConfigError("task", f"{place} cannot be read: {said}") from None
    if kinds >= {"pydantic", "msgspec"}:
        raise ConfigError("task", f"{place} mixes types of pydantic and of msgspec")
    raise ConfigError(
        "task",
        f"{place} is annotated as more than JSON, which needs msgspec or pydantic: pip install"
        " 'rqueue[msgspec]' or 'rqueue[pydantic]'",
    )


def _kinds(annotation: Any, depth: int = 0) -> Iterator[str]:
    """Whose types an annotation contains that are more than JSON: pydantic, msgspec, or any."""
    if annotation is inspect.Parameter.empty or depth > 20:
        return
    if isinstance(annotation, type) and get_origin(annotation) is None:
        if hasattr(annotation, "__pydantic_validator__"):
            yield "pydantic"
        elif hasattr(annotation, "__struct_fields__"):
            yield "msgspec"
        elif issubclass(annotation, _SCALARS) or is_dataclass(annotation):
            yield "any"
        return
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            library = type(extra).__module__.partition(".")[0]
            if library in _CONSTRAINTS:
                yield "any" if library == "annotated_types" else library
    for part in get_args(annotation):
        if not isinstance(part, str):
            yield from _kinds(part, depth + 1)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def _with_msgspec(msgspec: Any, annotation: Any) -> Read:
    convert, wrong = msgspec.convert, msgspec.ValidationError

    def read(value: Any) -> Any:
        try:
            return convert(value, annotation)
        except wrong as error:
            said, _, path = str(error).partition(" - at `$")
            raise _Misread(f"{_after_dots(path.rstrip('`'))}: {said}") from None

    return read


def _after_dots(path: str) -> str:
    """A path without the quotes of names that need some."""
    return re.sub(r"\[\.\.\.\]", "[]", path)


def _with_pydantic(adapter: Any, pydantic: Any, value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        parts = [f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"]]
        raise _Misread(f"{''.join(parts)}: {first['msg']}") from None
