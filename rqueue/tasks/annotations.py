"""What an annotation is read as: each of its parts by the nodes of `rqueue.tasks.type_nodes`."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from rqueue.model.json_forms import form_of
from rqueue.tasks.type_nodes import (
    LIBRARIES,
    PLAIN,
    Kinds,
    Misread,
    Node,
    Unreadable,
    both,
    derived_node,
    dict_node,
    each,
    enum_node,
    json_name,
    library_node,
    library_of,
    list_node,
    literal_node,
    model_kinds,
    scalar_node,
    set_node,
    stepped,
)

__all__ = ["NotKnownYet", "node_of"]


class NotKnownYet(Exception):
    """An annotation names something that is not defined here, or not yet."""


_LISTS = {list, Sequence, Iterable, typing.Collection, typing.MutableSequence}
_LISTS = {get_origin(one) or one for one in _LISTS}
_SETS = {set: set, frozenset: frozenset, AbstractSet: frozenset}
_SETS[typing.get_origin(typing.MutableSet)] = set  # type: ignore[index]
_DICTS = {dict, Mapping, get_origin(typing.MutableMapping)}


def node_of(annotation: Any, scope: Any) -> Node:
    """What reads this annotation. scope: the module whose names it uses. Raises Unreadable and
    NotKnownYet."""
    try:
        return _Builder().build(annotation, scope, {})
    except RecursionError:
        raise Unreadable("it contains itself without end, or is nested too deep") from None


class _Builder:
    """Of one annotation: a class that contains itself is built once."""

    def __init__(self) -> None:
        self._classes: dict[Any, Node] = {}

    def build(self, annotation: Any, scope: Any, bound: Mapping[Any, Any]) -> Node:
        if isinstance(annotation, str | ForwardRef):
            return self._alias((scope, str(annotation)), _resolved(annotation, scope), scope)
        with suppress(TypeError):  # of an annotation without a hash
            if annotation in PLAIN:
                return PLAIN[annotation]
        if isinstance(annotation, TypeVar):
            return self.build(bound.get(annotation, _least(annotation)), scope, {})
        if isinstance(annotation, NewType):
            return self.build(annotation.__supertype__, scope, bound)
        if hasattr(annotation, "__value__"):  # type X = ...
            return self._alias(annotation, annotation.__value__, scope)
        if isinstance(annotation, _OF_CALLS) or _is_unpacked(annotation):
            return PLAIN[Any]
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            libraries = {LIBRARIES.get(type(one).__module__.partition(".")[0]) for one in args[1:]}
            if len(libraries - {None}) > 1:
                raise Unreadable("it mixes constraints of pydantic and of msgspec")
            inner = self.build(args[0], scope, bound)
            library = max(libraries, key=bool, default=None)
            return library_node(library, annotation, inner.kinds) if library else inner
        if origin is Literal:
            return literal_node(args)
        if origin in (Union, types.UnionType):
            return self._union(args, scope, bound)
        if getattr(origin, "_name", "") in _QUALIFIERS:
            return self.build(args[0], scope, bound)
        kind = origin or annotation
        if not isinstance(kind, type):
            raise Unreadable(f"{annotation!r} has no JSON form")
        if kind in _LISTS:
            return list_node(self._inner(args, 0, scope, bound))
        if kind in _SETS:
            return set_node(_SETS[kind], self._inner(args, 0, scope, bound))
        if kind in _DICTS:
            return dict_node(
                self._inner(args, 0, scope, bound, str), self._inner(args, 1, scope, bound)
            )
        if kind is tuple:
            return self._tuple(args, scope, bound)
        meant = _with_bound(annotation, bound)
        return self._class(meant, kind, get_args(meant))

    def _alias(self, name: Any, meant: Any, scope: Any) -> Node:
        """What a name stands for, which may contain that name: `JSON = list["JSON"] | str`."""
        known = self._classes.get(name)
        if known is None:
            node = self._classes[name] = Node(lambda value: value, frozenset(), False)
            known = self.build(meant, scope, {})
            node.read, node.kinds, node.special = known.read, known.kinds, known.special
            node.exact = known.exact
        return known

    def _inner(
        self, args: tuple[Any, ...], at: int, scope: Any, bound: Mapping[Any, Any], bare: Any = Any
    ) -> Node:
        return self.build(args[at] if args else bare, scope, bound)

    def _tuple(self, args: tuple[Any, ...], scope: Any, bound: Mapping[Any, Any]) -> Node:
        if not args or (len(args) == 2 and args[1] is ...):
            inner = self._inner(args, 0, scope, bound)
            return Node(lambda value: tuple(each(value, inner)), frozenset(("list",)), True)
        if any(map(_is_unpacked, args)):
            raise Unreadable("annotate a tuple of so many values, or tuple[..., ...] of one type")
        nodes = [self.build(one, scope, bound) for one in args if one != ()]

        def read(value: Any) -> Any:
            if type(value) is not list:
                raise Misread(f"expected list, got {json_name(value)}")
            if len(value) != len(nodes):
                raise Misread(f"expected {len(nodes)} values, got {len(value)}")
            return tuple(stepped(f"[{at}]", node, one) for at, (node, one) in both(nodes, value))

        return Node(read, frozenset(("list",)), True)

    def _union(self, args: tuple[Any, ...], scope: Any, bound: Mapping[Any, Any]) -> Node:
        models: dict[str, list[Any]] = {}
        nodes: list[Node] = []
        for one in args:
            library = library_of(get_origin(one) or one)
            if library:
                models.setdefault(library, []).append(one)
            else:
                nodes.append(self.build(one, scope, bound))
        for library, its in models.items():
            kinds: Kinds = frozenset().union(*map(model_kinds, its))
            nodes.append(library_node(library, Union[tuple(its)], kinds))  # noqa: UP007
        for at, node in enumerate(nodes):
            for other in nodes[:at]:
                both = node.kinds & other.kinds
                if both and (node.special or other.special):
                    raise Unreadable(
                        f"two members of the union are {'/'.join(sorted(both))} in JSON, which does"
                        " not tell them apart: annotate one of them"
                    )
        # an int is an int, also if a float might be meant
        nodes.sort(key=lambda node: node is PLAIN[float])

        def read(value: Any) -> Any:
            meant: Misread | None = None
            for node in nodes:
                try:
                    return node.read(value)
                except Misread as error:
                    if meant is None or json_name(value) in node.kinds:
                        meant = error
            assert meant is not None
            raise meant

        kinds = frozenset().union(*(node.kinds for node in nodes))
        return Node(read, kinds, any(node.special for node in nodes))

    def _class(self, annotation: Any, kind: type, args: tuple[Any, ...]) -> Node:
        if library := library_of(kind):
            return library_node(library, annotation, model_kinds(kind))
        if issubclass(kind, Enum):
            return enum_node(kind)
        if (form := form_of(kind)) is not None:
            return scalar_node(form)
        if issubclass(kind, bytes | bytearray | memoryview):
            raise Unreadable("JSON has no bytes: annotate str, and pass text, for instance base64")
        if annotation in self._classes:
            return self._classes[annotation]
        parts: list[tuple[str, Any, Any]] = []
        bound = _bound_by(kind, args)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            known = _hints(kind)
            defaults = kind._field_defaults  # type: ignore[attr-defined]
            parts = [(n, known.get(n, Any), n in defaults) for n in kind._fields]
        elif _is_typed_dict(kind):
            required: AbstractSet[str] = kind.__required_keys__  # type: ignore[attr-defined]
            parts = [(n, its, _left_out(its, n in required)) for n, its in _hints(kind).items()]
        elif is_dataclass(kind):
            hints = _hints(kind)
            parts = [
                (f.name, hints.get(f.name, f.type), not _required(f))
                for f in fields(kind)
                if f.init
            ]
        elif issubclass(kind, str | int | float):
            return derived_node(kind)
        else:
            raise Unreadable(_why_not(kind))
        return self._object(annotation, kind, parts, _bound_in_fields(kind, bound))

    def _object(
        self,
        annotation: Any,
        kind: type,
        parts: list[tuple[str, Any, Any]],
        bound: Mapping[str, Mapping[Any, Any]],
    ) -> Node:
        nodes: dict[str, Node] = {}
        optional = {name for name, _, left_out in parts if left_out}
        loose = _is_typed_dict(kind)

        def read(value: Any) -> Any:
            if type(value) is kind and not loose:  # a `Failure`, which no JSON was
                return value
            if type(value) is not dict:
                raise Misread(f"expected dict, got {json_name(value)}")
            made = dict(value) if loose else {}
            for name, node in nodes.items():
                if name in value:
                    made[name] = stepped(f".{name}", node, value[name])
                elif name not in optional:
                    raise Misread(f"'{name}' is missing")
            if loose:
                return made
            try:
                return kind(**made)
            except (TypeError, ValueError) as error:  # of its own checks
                raise Misread(str(error)) from None

        node = self._classes[annotation] = Node(read, frozenset(("dict",)), True)
        scope = sys.modules.get(kind.__module__)
        for name, its, _ in parts:
            nodes[name] = self.build(its, scope, bound.get(name, {}))
        if loose:
            node.special = any(one.special for one in nodes.values())
        return node


# -- type variables --------------------------------------------------------------------------------


def _bound_by(kind: type, args: tuple[Any, ...]) -> dict[Any, Any]:
    """What the type variables of a class stand for."""
    return dict(zip(getattr(kind, "__parameters__", ()), args, strict=False))


def _with_bound(annotation: Any, bound: Mapping[Any, Any]) -> Any:
    """`Box[T]` with what T stands for."""
    free = getattr(annotation, "__parameters__", ()) if get_args(annotation) else ()
    if (
        not free
        or get_origin(annotation) is typing.Generic
        or not all(isinstance(one, TypeVar) for one in free)
    ):
        return annotation
    return annotation[tuple(bound.get(one, _least(one)) for one in free)]


def _least(variable: TypeVar) -> Any:
    """What a type variable is at least, whatever it stands for."""
    if variable.__constraints__:
        return Union[variable.__constraints__]  # noqa: UP007
    return variable.__bound__ or Any


def _bound_in_fields(kind: type, bound: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """What type variables stand for in each field: in the words of the class that declares it."""
    found: dict[str, Mapping[Any, Any]] = {}
    for base in reversed(kind.__dict__.get("__orig_bases__", kind.__bases__)):
        meant, of = _with_bound(base, bound), get_origin(base) or base
        if isinstance(of, type) and of is not typing.Generic:
            found |= _bound_in_fields(of, _bound_by(of, get_args(meant)))
    own = dict.fromkeys(inspect.get_annotations(kind), bound)
    # a TypedDict names those of its bases too
    return own | found if _is_typed_dict(kind) else found | own


def _is_unpacked(annotation: Any) -> bool:
    """True for `*tuple[int, ...]` and `Unpack[...]`."""
    return get_origin(annotation) is typing.Unpack or getattr(annotation, "__unpacked__", False)


# -- names -----------------------------------------------------------------------------------------


def _resolved(annotation: str | ForwardRef, scope: Any) -> Any:
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    try:
        return eval(text, dict(vars(scope)))  # as typing.get_type_hints does
    except Exception as error:  # a name for type checkers alone may raise anything
        raise NotKnownYet(text) from error


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception as error:
        raise NotKnownYet(kind.__qualname__) from error


_OF_CALLS = (typing.ParamSpecArgs, typing.ParamSpecKwargs, typing.TypeVarTuple)

_QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
"""What stands around the type of a field, of `typing` or `typing_extensions`."""


def _is_typed_dict(kind: type) -> bool:
    """True also for those of `typing_extensions`, which pydantic asks for before Python 3.12."""
    return issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def _left_out(hint: Any, required: bool) -> bool:
    """True if a key of a TypedDict may be missing. Its class does not know if annotations are
    text."""
    origin = get_origin(hint)
    return origin is typing.NotRequired or not (required or origin is typing.Required)


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _why_not(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else _whole_name(kind)
    if kind.__module__.partition(".")[0] == "numpy":
        return f"no JSON becomes {name}: annotate int, float or list, and pass value.item()"
    return (
        f"no JSON becomes {name}: annotate its id or a dataclass, or give the parameter a default"
        " or Depends(...)"
    )


def _whole_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
