"""What an enqueue accepts is what the task gets: signatures and values at random.

For each annotation: an enqueue accepts a value if and only if a worker reads it; what it reads is
the value that was given; and msgspec and pydantic read the same from the same JSON, so that a field
of a model is no exception.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Union,
)
from uuid import UUID

import msgspec
import orjson
import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import BadArguments, ConfigError, NotEncodable
from rqueue.model.envelope import pack, unpack
from rqueue.tasks.arguments import InvalidArguments, readers
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry, registry
from rqueue.testing import in_memory


class Colour(enum.Enum):
    RED = "red"
    DAY = date(2030, 1, 31)
    PAIR = (1, 2)
    NOTHING = None


class Word(enum.StrEnum):
    A = "a"
    B = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Safe(str):
    __slots__ = ()


class Facts(typing_extensions.TypedDict):
    at: datetime
    note: typing_extensions.NotRequired[str]


class Parts(typing.TypedDict, total=False):
    at: typing.Required[date]
    more: list[Facts]


class Pair(NamedTuple):
    first: date
    second: int = 7


@dataclass
class Node:
    key: UUID
    inner: list[Node]
    size: int = 3


T = typing.TypeVar("T")
Day = typing.TypeVar("Day", bound=date)


@dataclass
class Box(typing.Generic[T]):
    value: T
    inner: Box[T] | None = None


@dataclass
class Growing(typing.Generic[T]):
    value: T
    inner: Growing[list[T]] | None = None


@dataclass
class Labelled(Box[date], typing.Generic[T]):
    label: T | None = None


Number = NewType("Number", int)

_INTS = st.integers(-(2**63), 2**64 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_ZONES = (
    st.none()
    | st.just(UTC)
    | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(
        lambda by: timezone(timedelta(minutes=by // timedelta(minutes=1)))
    )
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_NODES = st.recursive(
    st.builds(Node, st.uuids(), st.just([]), st.integers(0, 9)),
    lambda inner: st.builds(Node, st.uuids(), st.lists(inner, max_size=2)),
    max_leaves=3,
)


class Row(NamedTuple):
    """An annotation, values that fit it, whether both libraries read the same from its JSON, and
    the kinds of JSON that it has."""

    annotation: Any
    values: st.SearchStrategy[Any]
    libraries: bool
    kinds: frozenset[str]
    special: bool = True


def row(
    annotation: Any, values: Any, kinds: str, libraries: bool = True, special: bool = True
) -> Row:
    return Row(annotation, values, libraries, frozenset(kinds.split()), special)


SCALARS = [
    row(bool, st.booleans(), "bool", special=False),
    row(int, _INTS, "int", special=False),
    row(float, _FLOATS, "int float", special=False),
    row(str, _TEXT, "text", special=False),
    row(datetime, st.datetimes(timezones=_ZONES), "text"),
    row(date, st.dates(), "text"),
    row(time, st.times(), "text"),
    row(timedelta, st.timedeltas(timedelta(-9999), timedelta(9999)), "text"),
    row(UUID, st.uuids(), "text"),
    row(Decimal, st.decimals(allow_nan=False, allow_infinity=False), "text int float"),
    row(Path, _TEXT.filter(lambda text: "\0" not in text).map(Path), "text", libraries=False),
    row(Colour, st.sampled_from(Colour), "text list null", libraries=False),
    row(Word, st.sampled_from(Word), "text"),
    row(Level, st.sampled_from(Level), "int"),
    row(Rights, st.sampled_from([Rights.READ, Rights.READ | Rights.WRITE]), "int", False),
    row(Safe, _TEXT.map(Safe), "text", libraries=False),
    row(Number, _INTS, "int", special=False),
    row(Literal["a", 1], st.sampled_from(["a", 1]), "text int", special=False),
    row(Literal[Word.A, None], st.sampled_from([Word.A, None]), "text null", libraries=False),
    row(Annotated[date, "of birth"], st.dates(), "text"),
    row(Annotated[int, pydantic.Field(gt=0)], st.integers(1, 9), "int", libraries=False),
    row(Annotated[str, msgspec.Meta(min_length=1)], st.just("x"), "text", libraries=False),
    row(
        Facts,
        st.fixed_dictionaries({"at": st.datetimes(timezones=_ZONES)}, optional={"note": _TEXT}),
        "dict",
    ),
    row(
        Parts,
        st.fixed_dictionaries({"at": st.dates()}, optional={"more": st.just([])}),
        "dict",
        libraries=False,
    ),
    row(Pair, st.builds(Pair, st.dates(), st.integers(0, 9)), "dict", libraries=False),
    row(Node, _NODES, "dict"),
    row(Day, st.dates(), "text", libraries=False),
    row(
        Labelled[UUID],
        st.builds(Labelled, st.dates(), st.builds(Box, st.dates()), st.uuids()),
        "dict",
        libraries=False,
    ),
]
KEYS = [one for one in SCALARS if one.annotation in (str, date, UUID, Word)]
_HASHED = [one for one in SCALARS if one.annotation not in (Facts, Parts, Node, Labelled[UUID])]


SHAPES = ["list", "tuple", "many", "set", "dict", "optional", "union", "class", "generic"]


@st.composite
def rows(draw: Any, depth: int = 2) -> Row:
    """An annotation at random."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(SCALARS))
    shape = draw(st.sampled_from(SHAPES))
    inner = draw(rows(depth=depth - 1))
    values = inner.values
    if shape == "list":
        return Row(list[inner.annotation], st.lists(values, max_size=2), inner.libraries,
                   frozenset(["list"]), inner.special)  # fmt: skip
    if shape == "tuple":
        other = draw(rows(depth=depth - 1))
        return Row(tuple[inner.annotation, other.annotation], st.tuples(values, other.values),
                   inner.libraries and other.libraries, frozenset(["list"]))  # fmt: skip
    if shape == "many":
        return Row(tuple[inner.annotation, ...], st.lists(values, max_size=2).map(tuple),
                   inner.libraries, frozenset(["list"]))  # fmt: skip
    if shape == "set":
        one = draw(st.sampled_from(_HASHED))
        kind = draw(st.sampled_from([set, frozenset]))
        return Row(kind[one.annotation], st.lists(one.values, max_size=3).map(kind),
                   one.libraries, frozenset(["list"]))  # fmt: skip
    if shape == "dict":
        key = draw(st.sampled_from(KEYS))
        return Row(dict[key.annotation, inner.annotation],
                   st.dictionaries(key.values, values, max_size=2),
                   inner.libraries, frozenset(["dict"]), key.special or inner.special)  # fmt: skip
    if shape == "class":
        made = make_dataclass("Made", [("a", inner.annotation), ("b", int, 3)])
        return Row(made, st.builds(made, values), inner.libraries, frozenset(["dict"]))
    if shape == "generic":
        return Row(Box[inner.annotation], st.builds(Box, values, st.builds(Box, values)), False,
                   frozenset(["dict"]))  # fmt: skip
    if shape == "optional" and "null" not in inner.kinds:
        return Row(Optional[inner.annotation], values | st.none(), inner.libraries,  # noqa: UP045
                   inner.kinds | {"null"}, inner.special)  # fmt: skip
    other = draw(rows(depth=depth - 1))
    if shape == "union" and not inner.kinds & other.kinds:
        return Row(Union[inner.annotation, other.annotation], values | other.values, False,  # noqa: UP007
                   inner.kinds | other.kinds, inner.special or other.special)  # fmt: skip
    return inner


def alike(one: Any, other: Any) -> bool:
    """Equal, and of the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(  # pydantic puts a TypedDict's keys in its order
            alike(key, its) and alike(one[key], other[its])
            for key, its in zip(sorted(one, key=str), sorted(other, key=str), strict=True)
        )
    if hasattr(one, "__dataclass_fields__"):
        return alike(vars(one), vars(other))
    return bool(one == other)


def function_of(annotation: Any, how: str) -> tuple[Callable[..., Any], list[Any]]:
    """A function with such a parameter, and where it says what it got."""
    got: list[Any] = []

    def by_place(a: Any, /) -> None:
        got.append(a)

    def by_name(*, a: Any) -> None:
        got.append(a)

    def rest(*a: Any) -> None:
        got.extend(a)

    def others(a: int = 0, /, *, b: str = "", **more: Any) -> None:
        got.extend(more.values())

    functions: dict[str, Any] = dict(place=by_place, name=by_name, rest=rest, others=others)
    function = functions[how]
    name = "more" if how == "others" else "a"
    function.__annotations__ = {"a": int, "b": str, name: annotation}
    return function, got


HOW = ["place", "name", "rest", "others"]


def arguments(how: str, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if how in ("place", "rest"):
        return (value,), {}
    return (), {"a": value}


def decided(annotation: Any, how: str, value: Any) -> tuple[bool, bool, Any]:
    """If an enqueue accepts a value, if a worker reads it, and what it reads."""
    function, _ = function_of(annotation, how)
    made = task(name="t", registry=Registry())(function)
    args, kwargs = arguments(how, value)
    try:
        made.check(args, kwargs)
        accepted = True
    except BadArguments:
        accepted = False
    try:
        _, plain_args, plain_kwargs, _ = unpack(pack("t", args, kwargs))
    except NotEncodable:
        return False, False, None
    reader = readers("t", function)
    try:
        read = reader(plain_args, plain_kwargs) if reader else (plain_args, plain_kwargs)
    except InvalidArguments:
        return accepted, False, None
    return accepted, True, (read[0] or [read[1]["a"]])[0]


@given(rows(), st.sampled_from(HOW), st.data())
def test_a_value_that_fits_reaches_the_task_as_it_is(one: Row, how: str, data: Any) -> None:
    value = data.draw(one.values)
    accepted, runs, read = decided(one.annotation, how, value)
    assert accepted
    assert runs
    assert alike(read, value), (read, value)


@given(rows(), st.sampled_from(HOW), st.data())
def test_an_enqueue_accepts_what_a_worker_reads(one: Row, how: str, data: Any) -> None:
    """Whatever the value is."""
    value = data.draw(data.draw(rows()).values)
    accepted, runs, read = decided(one.annotation, how, value)
    assert accepted == runs
    if runs and one.special:  # what came by another type is read the same again
        assert alike(decided(one.annotation, how, read)[2], read)


@given(rows().filter(lambda one: one.libraries), st.data())
def test_both_libraries_read_the_same_from_the_same_json(one: Row, data: Any) -> None:
    value = data.draw(one.values)
    sent = orjson.loads(pack("t", (value,)))[1][0] if value is not None else None
    assert alike(msgspec.convert(sent, one.annotation, str_keys=True), value)
    adapter = pydantic.TypeAdapter(one.annotation)
    assert alike(adapter.validate_json(orjson.dumps(sent)), value)


@given(st.data())
def test_the_test_kit_reads_what_a_worker_reads(data: Any) -> None:
    known = dict(registry._tasks)
    try:
        with in_memory() as queues:
            expected = []
            for number in range(4):
                one, how = data.draw(rows()), data.draw(st.sampled_from(HOW))
                value = data.draw(one.values)
                function, got = function_of(one.annotation, how)
                made = task(name=f"t{number}")(function)
                args, kwargs = arguments(how, value)
                made.enqueue(*args, **kwargs)
                expected.append((got, value))
            queues.drain()
            for got, value in expected:
                assert len(got) == 1
                assert alike(got[0], value)
    finally:
        registry._tasks.clear()
        registry._tasks.update(known)


@pytest.mark.parametrize("one", SCALARS, ids=lambda one: str(one.annotation))
@pytest.mark.parametrize("other", SCALARS, ids=lambda one: str(one.annotation))
def test_a_union_is_read_or_refused_where_the_task_is_declared(one: Row, other: Row) -> None:
    """Two types that JSON does not tell apart are refused, all others are read."""
    if one.annotation is other.annotation:
        return
    apart = not one.kinds & other.kinds or not (one.special or other.special)
    function, _ = function_of(Union[one.annotation, other.annotation], "place")  # noqa: UP007
    try:
        task(name="t", registry=Registry())(function)
    except Exception:
        assert not apart
    else:
        assert apart


@pytest.mark.parametrize(
    "annotation", [[int], 5, Growing[int], tuple[date, *tuple[int, ...]], enum.Enum], ids=str
)
def test_a_declaration_refuses_what_is_no_type_of_json(annotation: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be read from JSON"):
        task(name="t", registry=Registry())(function_of(annotation, "name")[0])


Nested = Union[None, date, list["Nested"]]  # noqa: UP007


def test_an_enqueue_refuses_what_is_nested_too_deep_to_be_read() -> None:
    value: Any = date(2030, 1, 31)
    for _ in range(240):
        value = [value]
    assert decided(Nested, "name", value)[:2] == (False, False)
