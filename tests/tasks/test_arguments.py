"""Arguments by annotation: there and back with the real libraries, and plain JSON left alone."""

import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Optional,
    TypedDict,
    TypeVar,
    Unpack,
)
from uuid import UUID

import annotated_types
import msgspec
import numpy as np
import pydantic
import pytest

from rqueue.errors import BadArguments, ConfigError, NotEncodable
from rqueue.model.envelope import encode_result, pack, unpack
from rqueue.model.parents import Failure
from rqueue.tasks.arguments import InvalidArguments, readers
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry


class Colour(Enum):
    RED = "red"


class Mixed(Enum):
    ONE = 1
    TEXT = "text"


@dataclass
class Point:
    x: int
    _hidden: Decimal
    when: datetime | None = None


class Item(pydantic.BaseModel):
    name: str = pydantic.Field(alias="n")
    price: Decimal
    point: Point | None = None


class Order(pydantic.BaseModel):
    items: list[Item]
    note: str | None = None


class Struct(msgspec.Struct):
    id: UUID
    points: list[Point]


class Facts(TypedDict):
    a: int


POINT = Point(1, Decimal("1.10"), datetime(2030, 1, 2, tzinfo=UTC))
ITEM = Item(n="x", price=Decimal("2.50"), point=POINT)

VALUES: list[tuple[Any, Any]] = [
    (datetime, POINT.when),
    (date, date(2030, 1, 2)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("1.50")),
    (Colour, Colour.RED),
    (Mixed, Mixed.TEXT),
    (Point, POINT),
    (Struct, Struct(UUID(int=7), [POINT])),
    (Item, ITEM),
    (Order, Order(items=[ITEM, ITEM])),
    (list[Order], [Order(items=[], note="n")]),
    (Optional[Point], None),  # noqa: UP045 - as some write it
    (dict[str, Point | None], {"a": POINT, "b": None}),
    (tuple[UUID, ...], (UUID(int=1), UUID(int=2))),
    (Annotated[int, pydantic.Field(gt=0)], 5),
    (Annotated[int, msgspec.Meta(gt=0)], 5),
]


def there_and_back(annotation: Any, value: Any) -> Any:
    def work(a: Any, *, b: Any = None) -> None: ...

    work.__annotations__ = {"a": annotation, "b": annotation}
    body = pack("t", (value,), {"b": value})
    _, args, kwargs, _ = unpack(body)
    reader = readers("t", work)
    assert reader is not None
    made, named = reader(tuple(args), kwargs)
    assert made[0] == named["b"]
    return made[0]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_there_and_back(annotation: Any, value: Any) -> None:
    assert there_and_back(annotation, value) == value


@pytest.mark.parametrize(
    "annotation",
    [int, str, Any, None, dict[str, Any], list[int], Literal["a"], "int | None", "NoSuchName",
     Facts, bool | None],
)  # fmt: skip
def test_plain_json_is_not_looked_at(annotation: Any) -> None:
    def work(a: Any, *args: Any, **kwargs: Any) -> None: ...

    work.__annotations__ = {"a": annotation, "args": annotation, "kwargs": annotation}
    assert readers("t", work) is None


def refused(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    reader = readers("t", function)
    assert reader is not None
    with pytest.raises(InvalidArguments) as caught:
        reader(args, kwargs)
    assert isinstance(caught.value, BadArguments)
    return str(caught.value)


def test_what_is_wrong_is_reported_by_its_path() -> None:
    def work(order: Order, struct: Struct, *when: datetime, **more: UUID) -> None: ...

    good = {"id": str(UUID(int=1)), "points": []}
    items: list[Any] = [{"n": "x", "price": "1"}, {"n": "x", "price": "dear"}]
    said = refused(work, {"items": items}, good)
    assert said.startswith("order.items[1].price: Input should be a valid decimal")
    assert ": task 't' takes (order: " in said
    said = refused(work, {"items": []}, {**good, "points": [{"x": "1", "_hidden": "1"}]})
    assert said.startswith("struct.points[0].x: Expected `int`, got `str`")
    said = refused(work, {"items": []}, good, "2030-01-02T00:00:00Z", 5.5j)
    assert said.startswith("when[1]: ")
    said = refused(work, {"items": []}, good, other="7")
    assert said.startswith("other: expected a UUID, got text")


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(when: datetime) -> None: ...
    def few(number: Annotated[int, annotated_types.Gt(0)]) -> None: ...

    monkeypatch.setitem(sys.modules, "msgspec", None)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    reader = readers("t", work)
    assert reader is not None
    assert reader(("2030-01-02T00:00:00Z",), {})[0] == [POINT.when]
    with pytest.raises(
        ConfigError, match=r"'number' of task 't' .* pip install 'rqueue\[pydantic\]'"
    ):
        readers("t", few)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (bytes, "pass text, for instance base64"),
        (list[bytes], "pass text, for instance base64"),
        (dict[int, str], r"annotate dict\[str, ...\]"),
        (str | Path, "two members of the union are text in JSON"),
        (Item | Struct, "two members of the union are dict in JSON"),
        (
            np.int64,
            r"no JSON becomes numpy.int64: annotate int, float or list, and pass value.item",
        ),
        (Thread, r"no JSON becomes threading.Thread: annotate its id"),
        (Callable[[], None], "no JSON becomes|has no JSON form"),
        (Annotated[int, pydantic.Field(gt=0), msgspec.Meta(gt=0)], "mixes constraints"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_where_the_task_is_declared(
    annotation: Any, said: str
) -> None:
    def work(a: Any) -> None: ...
    def with_default(a: Any = None) -> None: ...

    work.__annotations__ = with_default.__annotations__ = {"a": annotation}
    with pytest.raises(ConfigError, match=f"parameter 'a' of task 't' .*{said}"):
        task(name="t", registry=Registry())(work)
    made = task(name="t", registry=Registry())(with_default)
    made.check((), {})
    with pytest.raises(BadArguments, match=said):
        made.check((5,), {})


def test_what_has_no_json_form_is_refused_where_it_is_enqueued() -> None:
    item = Item.model_construct(name="x", price=Decimal("NaN"))
    for value, said in (
        (Decimal("NaN"), "argument 'a' of task 't': NaN is not JSON"),
        ({"deep": [b"x"]}, "argument 'a.deep[0]' of task 't': bytes is not JSON"),
        (Struct(UUID(int=1), [float("inf")]), "'a.points[0]' of task 't': inf"),  # type: ignore[list-item]
    ):
        with pytest.raises(NotEncodable) as caught:
            pack("t", (value,), parameters=("a",))
        assert said in str(caught.value)
    assert there_and_back(Item, Item(n="x", price=Decimal(1))) == Item(n="x", price=Decimal(1))
    assert b"NaN" in pack("t", (item,))  # text, as pydantic has it
    assert pack("t", (Order(items=[], note=None),)) == b'["t",[{"items":[],"note":null}]]'


def test_results_may_be_models_too() -> None:
    assert encode_result(ITEM) == (
        b'{"n":"x","price":"2.50","point":{"x":1,"_hidden":"1.10","when":"2030-01-02T00:00:00Z"}}'
    )
    assert encode_result([Decimal("1.5"), Struct(UUID(int=0), [])]).startswith(
        b'["1.5",{"id":"0000'
    )


LATER = """
from __future__ import annotations
from typing import TYPE_CHECKING
from dataclasses import dataclass
from rqueue.tasks.decorator import task

if TYPE_CHECKING:
    from datetime import datetime

@task(name="later", registry=registry)
def later(point: list[Point], *, node: Node | None = None) -> None: ...

@task(name="never", registry=registry)
def never(when: datetime, of: dict[str, datetime] = {}) -> None: ...

@task(name="inside", registry=registry)
def inside(hidden: Hidden) -> None: ...

@dataclass
class Point:
    x: int

@dataclass
class Node:
    inner: list[Node]

@dataclass
class Hidden:
    when: datetime
"""


def test_what_an_annotation_names_may_be_defined_later_or_for_type_checkers_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: Any = ModuleType("made_later")
    made.registry = Registry()
    monkeypatch.setitem(sys.modules, "made_later", made)
    exec(LATER, vars(made))
    made.later.check(([made.Point(1)],), {"node": made.Node([made.Node([])])})
    with pytest.raises(BadArguments, match=r"point\[0\]: expected dict, got int"):
        made.later.check(([1],), {})
    reader = readers("later", made.later.function)
    assert reader is not None
    read, named = reader([[{"x": 1}]], {"node": {"inner": [{"inner": []}]}})
    assert (read, named["node"]) == ([[made.Point(1)]], made.Node([made.Node([])]))
    made.never.check(("2030-01-31", {"a": "b"}), {})
    for args in (datetime(2030, 1, 31),), ("", {"a": (1, 2)}), ("", {date(2030, 1, 31): ""}):
        with pytest.raises(BadArguments, match="import that name outside of TYPE_CHECKING"):
            made.never.check(args, {})
    with pytest.raises(BadArguments, match="import that name outside of TYPE_CHECKING"):
        made.inside.check((made.Hidden(datetime(2030, 1, 31)),), {})


def test_a_failure_can_be_passed_on() -> None:
    failure = Failure("j", "dead", "ValueError", "no such page")
    plain = {"id": "j", "state": "dead", "type": "ValueError", "message": "no such page"}
    assert unpack(pack("t", ([1, failure],)))[1] == [[1, plain]]
    assert there_and_back(list[Failure | int], [1, failure]) == [1, failure]
    reader = readers("t", lambda_of(Failure))
    assert reader is not None
    assert reader((failure,), {})[0] == [failure]  # as a parent leaves it


def lambda_of(annotation: Any) -> Callable[..., Any]:
    def work(a: Any) -> None: ...

    work.__annotations__ = {"a": annotation}
    return work


Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Tree = dict[str, "Tree | date"]
Words = typing.ParamSpec("Words")
Content = TypeVar("Content")


class Options(TypedDict, total=False):
    due: date
    note: str


@dataclass
class Boxed(Generic[Content]):
    inside: Content
    others: list[Content]


class Held(NamedTuple, Generic[Content]):
    inside: "Content"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"


class Row(msgspec.Struct, array_like=True):
    of: date


class Left(msgspec.Struct, tag=True):
    a: int


class Right(msgspec.Struct, tag=True):
    a: int


class Numbers(pydantic.RootModel[list[int]]):
    pass


DAY = date(2030, 1, 31)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Boxed[date], Boxed(DAY, [DAY])),
        (Held[date], Held(DAY)),
        (Cat | Dog, Dog()),
        (Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], Dog()),
        (list[Cat] | Cat | None, Cat()),
        (Numbers | None, Numbers([1])),
        (Row, Row(DAY)),
        (Left | Right, Right(1)),
        (typing.Dict[str, date], {"a": DAY}),  # noqa: UP006 - as some write it
        (Mapping[str, date], {"a": DAY}),
        (Sequence[date], [DAY]),
    ],
    ids=str,
)
def test_models_and_generic_types_come_back(annotation: Any, value: Any) -> None:
    task(name="t", registry=Registry())(lambda_of(annotation)).check((value,), {})
    assert there_and_back(annotation, value) == value


def test_types_of_pydantic_itself_are_read_by_it() -> None:
    made = task(name="t", registry=Registry())(lambda_of(pydantic.HttpUrl | None))
    made.check(("https://example.org/",), {})
    with pytest.raises(BadArguments, match="a: Input should be a valid URL"):
        made.check(("nowhere",), {})


def test_names_that_contain_themselves() -> None:
    assert readers("t", lambda_of(Json)) is None
    assert readers("t", lambda_of("Json")) is None
    assert there_and_back(Tree, {"a": {"b": date(2030, 1, 1)}}) == {"a": {"b": date(2030, 1, 1)}}


def test_keywords_of_a_typed_dict() -> None:
    def work(*args: Words.args, **options: Unpack[Options]) -> None: ...

    made = task(name="t", registry=Registry())(work)
    made.check((1, date(2030, 1, 1)), {"due": date(2030, 1, 1), "note": "x", "other": 1})
    with pytest.raises(BadArguments, match="due: expected a date"):
        made.check((), {"due": "tomorrow"})
    reader = readers("t", work)
    assert reader is not None
    assert reader((), {"due": "2030-01-01", "note": "x"})[1] == {
        "due": date(2030, 1, 1),
        "note": "x",
    }
