"""Arguments by annotation: they reach the task as it annotates them, and an enqueue refuses those
that would not.

A parameter that is annotated as a scalar of `rqueue.model.json_forms`, an Enum, a set, tuple, named
tuple, TypedDict, dataclass, pydantic model or msgspec Struct, or as something that contains one,
gets its value as that; all others get the JSON that came, and cost nothing. What Python's own types
are read as is said here, once. A model, and `Annotated` with constraints, is read by its library.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from rqueue.errors import BadArguments, ConfigError, NotEncodable
from rqueue.model.envelope import decode_result, encode_result
from rqueue.tasks.annotations import NotKnownYet, node_of
from rqueue.tasks.depends import annotation_of, marker_of, tick_parameter
from rqueue.tasks.type_nodes import ANY_KIND, Misread, Node, Unreadable

__all__ = ["GIVEN", "InvalidArguments", "Reader", "readers"]

GIVEN: Any = object()
"""Stands for an argument that a parent's result will be: what that is, nobody knows yet."""


UNKNOWN = Node(lambda value: value, ANY_KIND, True)
"""Of an annotation that names something which does not exist at run time: the JSON that came."""


class InvalidArguments(BadArguments):
    """Arguments that are not what the task's annotations say: the worker's, not the job's own."""


class Reader:
    """Makes a task's arguments what its annotations say.

    Raises ConfigError for a parameter that callers have to give and that no JSON becomes.
    """

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        signature = inspect.signature(function)
        self._positions: list[tuple[str, Node | None]] = []
        self._names: dict[str, Node | None] = {}
        self._rest: tuple[str, Node | None] = ("", None)
        self._others: Node | None = None
        self._given: set[str] = set()
        self.whole = True
        """False if an annotation names something that is not defined yet."""
        shown: list[inspect.Parameter] = []
        tick = tick_parameter(function)
        for parameter in signature.parameters.values():
            if marker_of(parameter, function) is not None or parameter.name == tick:
                self._given.add(parameter.name)
                continue
            shown.append(parameter)
            if parameter.kind is parameter.VAR_KEYWORD:
                for name, its in _unpacked(parameter, function).items():
                    one = parameter.replace(name=name, annotation=its, kind=parameter.KEYWORD_ONLY)
                    self._names[name] = self._node(one, function)
            node = self._node(parameter, function)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = (parameter.name, node)
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._others = node
            else:
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self._positions.append((parameter.name, node))
                if parameter.kind is not parameter.POSITIONAL_ONLY:
                    self._names[parameter.name] = node
        nodes = {*self._names.values(), *(node for _, node in self._positions), self._rest[1]}
        nodes = {*nodes, self._others} - {None}
        self.typed = bool(nodes)
        """True if an enqueue has to look at the values."""
        self.needed = bool(nodes - {UNKNOWN} or self._given)
        """True if a worker has to read the values."""
        self._signature = str(signature.replace(parameters=shown))

    def _node(self, parameter: inspect.Parameter, function: Callable[..., Any]) -> Node | None:
        annotation = annotation_of(parameter, function)
        if annotation is parameter.empty and parameter.annotation is parameter.empty:
            return None
        try:
            if annotation is parameter.empty:
                raise NotKnownYet
            node = node_of(annotation, _module_of(function))
        except NotKnownYet:
            self.whole = False
            return UNKNOWN
        except Unreadable as error:
            if parameter.default is parameter.empty and not parameter.kind.name.startswith("VAR"):
                place = f"parameter '{parameter.name}' of task '{self._task}'"
                raise ConfigError("task", f"{place} cannot be read from JSON: {error}") from None
            # left out it has its default, which was never JSON
            return Node(_refusing(str(error)), frozenset(), True)
        return node if node.special else None

    def __call__(
        self, args: tuple[Any, ...] | list[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as they are annotated. Raises InvalidArguments, with the path of what is
        wrong."""
        made = list(args)
        for index, value in enumerate(made):
            name, node = self._at(index)
            if node is not None:
                made[index] = self._value(name, node, value)
        if not kwargs:
            return made, kwargs
        named: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in self._given:
                said = f"'{name}' is a dependency, which no caller gives"
                raise InvalidArguments(self._task, said, self._signature)
            node = self._names.get(name, self._others)
            named[name] = value if node is None else self._value(name, node, value)
        return made, named

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise BadArguments unless a worker would read these values. What has no JSON form is left
        to who packs it."""
        for index, value in enumerate(args):
            self._check(*self._at(index), value)
        for name, value in kwargs.items():
            self._check(name, self._names.get(name, self._others), value)

    def _check(self, name: str, node: Node | None, value: Any) -> None:
        if node is None or value is GIVEN or (node.exact is not None and type(value) is node.exact):
            return
        if node is UNKNOWN:
            if not _is_json(value):
                said = (
                    f"{name} is annotated with a name that is not defined when the task runs, so it"
                    f" would not get the {type(value).__name__} back: import that name outside of"
                    " TYPE_CHECKING"
                )
                raise BadArguments(self._task, said, self._signature)
            return
        try:
            plain = decode_result(encode_result(value))
        except NotEncodable:
            return
        try:
            node.read(plain)
        except Misread as error:
            raise BadArguments(self._task, f"{name}{error}", self._signature) from None
        except RecursionError:
            raise BadArguments(self._task, f"{name}: {_TOO_DEEP}", self._signature) from None

    def _at(self, index: int) -> tuple[str, Node | None]:
        if index < len(self._positions):
            return self._positions[index]
        name, node = self._rest
        return f"{name}[{index - len(self._positions)}]", node

    def _value(self, name: str, node: Node, value: Any) -> Any:
        try:
            return node.read(value)
        except Misread as error:
            raise InvalidArguments(self._task, f"{name}{error}", self._signature) from None
        except RecursionError:
            raise InvalidArguments(self._task, f"{name}: {_TOO_DEEP}", self._signature) from None


_TOO_DEEP = "nested too deep to be read"


def readers(task: str, function: Callable[..., Any]) -> Reader | None:
    """What reads a task's arguments; None where they are plain JSON. Raises ConfigError."""
    reader = Reader(task, function)
    return reader if reader.needed else None


def _unpacked(parameter: inspect.Parameter, function: Callable[..., Any]) -> dict[str, Any]:
    """The keys of `**options: Unpack[Options]` and their types."""
    annotation = annotation_of(parameter, function)
    if get_origin(annotation) is not Unpack:
        return {}
    try:
        return get_type_hints(get_args(annotation)[0], include_extras=True)
    except Exception:  # a name for type checkers alone may raise anything
        return {}


def _module_of(function: Any) -> Any:
    """The module whose names a function's annotations use."""
    function = inspect.unwrap(function)
    while isinstance(function, partial):
        function = function.func
    return sys.modules.get(getattr(function, "__module__", ""))


def _is_json(value: Any) -> bool:
    """True if a value comes back from JSON as it is."""
    kind = type(value)
    if kind is list:
        return all(map(_is_json, value))
    if kind is dict:
        return all(type(key) is str and _is_json(one) for key, one in value.items())
    return value is None or kind in (bool, int, float, str)


def _refusing(said: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is None:
            return None
        raise Misread(said)

    return read
