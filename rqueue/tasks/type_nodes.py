"""What reads JSON as values of one type: a `Node`, made of the nodes of its parts.

Python's own types are read here, models of pydantic and msgspec by their libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from importlib import import_module
from pathlib import PurePath
from typing import Any, LiteralString, get_origin

from rqueue.errors import NotEncodable
from rqueue.model.envelope import encode_result
from rqueue.model.json_forms import Form

__all__ = [
    "ANY_KIND",
    "LIBRARIES",
    "PLAIN",
    "Kinds",
    "Misread",
    "Node",
    "Unreadable",
    "both",
    "derived_node",
    "dict_node",
    "each",
    "enum_node",
    "json_name",
    "library_node",
    "library_of",
    "list_node",
    "literal_node",
    "model_kinds",
    "scalar_node",
    "set_node",
    "stepped",
]

Read = Callable[[Any], Any]
Kinds = frozenset[str]

ANY_KIND: Kinds = frozenset(("null", "bool", "int", "float", "text", "list", "dict"))


class Misread(Exception):
    """A value that is not of its type: what is wrong, and the path to it."""

    def __init__(self, said: str, path: str = "") -> None:
        super().__init__(said, path)
        self.said, self.path = said, path

    def under(self, step: str) -> Misread:
        """The same, seen from the container."""
        return Misread(self.said, step + self.path)

    def __str__(self) -> str:
        return f"{self.path}: {self.said}"


class Unreadable(Exception):
    """An annotation that no JSON becomes, and what to do."""


class Node:
    """One annotation. kinds: of the JSON that it reads. special: values differ from their JSON.
    exact: the values of this very type are read as they are written."""

    __slots__ = ("exact", "kinds", "read", "special")

    def __init__(self, read: Read, kinds: Kinds, special: bool, exact: type | None = None) -> None:
        self.read, self.kinds, self.special, self.exact = read, kinds, special, exact


def _same(value: Any) -> Any:
    return value


def _plain(kind: type, name: str) -> Node:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Misread(f"expected {name}, got {json_name(value)}")
        return value

    return Node(read, frozenset((name,)), False)


def _float(value: Any) -> Any:
    if type(value) is int:
        return float(value)
    if type(value) is not float:
        raise Misread(f"expected float, got {json_name(value)}")
    return value


def _null(value: Any) -> Any:
    if value is not None:
        raise Misread(f"expected null, got {json_name(value)}")


ANY = Node(_same, ANY_KIND, False)
PLAIN: Mapping[Any, Node] = {
    bool: _plain(bool, "bool"),
    int: _plain(int, "int"),
    float: Node(_float, frozenset(("int", "float")), False),
    str: _plain(str, "text"),
    LiteralString: _plain(str, "text"),
    None: Node(_null, frozenset(("null",)), False),
    type(None): Node(_null, frozenset(("null",)), False),
    Any: ANY,
    object: ANY,
}

LIBRARIES = {"pydantic": "pydantic", "annotated_types": "pydantic", "msgspec": "msgspec"}


def stepped(step: str, node: Node, value: Any) -> Any:
    """Read a part of a container; what is wrong with it names its place."""
    try:
        return node.read(value)
    except Misread as error:
        raise error.under(step) from None


def both(nodes: list[Node], values: list[Any]) -> Iterable[tuple[int, tuple[Node, Any]]]:
    """The places of a tuple, each with its node and value."""
    return enumerate(zip(nodes, values, strict=True))


def each(value: Any, node: Node) -> list[Any]:
    """Read a list, one after the other."""
    if type(value) is not list:
        raise Misread(f"expected list, got {json_name(value)}")
    return [stepped(f"[{at}]", node, one) for at, one in enumerate(value)]


def list_node(node: Node) -> Node:
    """A list of one type."""
    return Node(lambda value: each(value, node), frozenset(("list",)), node.special)


def set_node(kind: Callable[[Iterable[Any]], Any], node: Node) -> Node:
    """A set, or frozenset, of one type."""

    def read(value: Any) -> Any:
        try:
            return kind(each(value, node))
        except TypeError as error:
            raise Misread(str(error)) from None

    return Node(read, frozenset(("list",)), True)


def dict_node(key: Node, node: Node) -> Node:
    """An object with keys and values of one type each. Raises Unreadable."""
    if "text" not in key.kinds:
        raise Unreadable("JSON has text keys only: annotate dict[str, ...]")

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Misread(f"expected dict, got {json_name(value)}")
        return {
            stepped(f"[{name!r}]", key, name): stepped(
                f".{name}" if name.isidentifier() else f"[{name!r}]", node, one
            )
            for name, one in value.items()
        }

    return Node(read, frozenset(("dict",)), key.special or node.special)


def scalar_node(form: Form) -> Node:
    """A type of the table of forms."""

    def read(value: Any) -> Any:
        try:
            return form.read(value)
        except ValueError as error:
            raise Misread(f"{error}, got {json_name(value)}") from None

    numbers = ("int", "float") if form.name == "decimal" else ()
    exact = None if issubclass(form.type, PurePath) else form.type
    return Node(read, frozenset(("text", *numbers)), True, exact)


def derived_node(kind: type) -> Node:
    """A class of one's own that derives from a plain one."""
    base = next(one for one in (str, int, float) if issubclass(kind, one))

    def read(value: Any) -> Any:
        try:
            return kind(PLAIN[base].read(value))
        except (TypeError, ValueError) as error:
            raise Misread(str(error)) from None

    return Node(read, PLAIN[base].kinds, True)


def _form(value: Any) -> bytes:
    return encode_result(value) or b"null"


def enum_node(kind: type[Enum]) -> Node:
    """A member by the JSON form of its value. Raises Unreadable."""
    try:
        members = {_form(member): member for member in kind}
    except NotEncodable as error:
        raise Unreadable(f"a value of {kind.__qualname__} is not JSON: {error.problem}") from None
    if not members:
        raise Unreadable(f"{kind.__qualname__} has no members")
    if len(members) < len(kind):
        raise Unreadable(f"two members of {kind.__qualname__} have the same JSON form")

    def read(value: Any) -> Any:
        found = members.get(_form(value))
        if found is None:
            try:
                found = kind(value)  # of a Flag, or by `_missing_`
            except (TypeError, ValueError, KeyError) as error:
                raise Misread(str(error)) from None
        return found

    return Node(read, frozenset(map(_kind_of_json, members)), True, None)


def literal_node(values: tuple[Any, ...]) -> Node:
    """One of these values. Raises Unreadable."""
    try:
        members = {_form(value): value for value in values}
    except NotEncodable as error:
        raise Unreadable(f"a literal is not JSON: {error.problem}") from None
    special = any(isinstance(value, Enum | bytes) for value in values)

    def read(value: Any) -> Any:
        if value is not None and type(value) not in (bool, int, str):
            raise Misread(f"expected one of {values}, got {json_name(value)}")
        try:
            return members[_form(value)]
        except KeyError:
            raise Misread(f"expected one of {values}, got {value!r}") from None

    return Node(read, frozenset(map(_kind_of_json, members)), special)


# -- models of libraries ---------------------------------------------------------------------------


def library_of(kind: Any) -> str:
    """The library whose model a class is; "" for none."""
    if hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__get_pydantic_core_schema__"):
        return "pydantic"
    return "msgspec" if hasattr(kind, "__struct_fields__") else ""


def model_kinds(model: Any) -> Kinds:
    """The kinds of JSON that a model is read from."""
    kind = get_origin(model) or model
    if getattr(kind, "__pydantic_root_model__", False):
        return ANY_KIND - {"null"}
    if not hasattr(kind, "__pydantic_validator__") and not hasattr(kind, "__struct_fields__"):
        return frozenset(("text",))  # a type of pydantic's own, such as `HttpUrl`
    struct = getattr(kind, "__struct_config__", None)
    return frozenset(("list" if struct is not None and struct.array_like else "dict",))


def library_node(library: str, annotation: Any, kinds: Kinds) -> Node:
    """What a library reads. Raises Unreadable."""
    try:
        used = import_module(library)
    except ImportError:
        raise Unreadable(
            f"{annotation!r} needs {library}: pip install 'rqueue[{library}]'"
        ) from None
    try:
        read = _with_msgspec if library == "msgspec" else _with_pydantic
        return Node(read(used, annotation), kinds, True)
    except Exception as error:  # their own, of many kinds
        said = str(error).partition("\n")[0]
        raise Unreadable(f"{library} says: {said}") from None


def _with_msgspec(msgspec: Any, annotation: Any) -> Read:
    msgspec.json.Decoder(annotation)  # raises if it cannot be read
    convert, wrong = msgspec.convert, msgspec.ValidationError

    def read(value: Any) -> Any:
        try:
            return convert(value, annotation, str_keys=True)
        except wrong as error:
            said, _, path = str(error).partition(" - at `$")
            raise Misread(said, re.sub(r"\[\.\.\.\]", "[]", path.rstrip("`"))) from None

    return read


def _with_pydantic(pydantic: Any, annotation: Any) -> Read:
    adapter = pydantic.TypeAdapter(annotation)

    def read(value: Any) -> Any:
        try:
            return adapter.validate_json(_form(value))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            parts = [f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"]]
            raise Misread(first["msg"], "".join(parts)) from None

    return read


_NAMES = {type(None): "null", str: "text"}


def json_name(value: Any) -> str:
    """The kind of a JSON value, for messages."""
    return _NAMES.get(type(value)) or type(value).__name__


def _kind_of_json(written: bytes) -> str:
    first = written[:1]
    if first in b"tf":
        return "bool"
    if first in b'n"[{':
        return {b"n": "null", b'"': "text", b"[": "list", b"{": "dict"}[first]
    return "float" if b"." in written or b"e" in written else "int"
