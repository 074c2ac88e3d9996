"""Arguments by annotation: there and back with the real libraries, and plain JSON left alone."""

import builtins
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from rqueue.errors import BadArguments, ConfigError, NotEncodable
from rqueue.model.envelope import encode_result, pack, unpack
from rqueue.tasks.arguments import InvalidArguments, readers


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
     Facts, tuple[int, str], bool | None],
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
    assert refused(work, {"items": []}, good, other="7").startswith("other: Invalid UUID")


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(when: datetime) -> None: ...

    real = builtins.__import__
    assert real
    monkeypatch.setitem(sys.modules, "msgspec", None)
    reader = readers("t", work)
    assert reader is not None
    assert reader(("2030-01-02T00:00:00Z",), {})[0] == [POINT.when]
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(ConfigError, match=r"'when' of task 't' .* pip install 'rqueue\[msgspec\]'"):
        readers("t", work)


def test_what_no_library_reads() -> None:
    def both(a: dict[str, Item | Struct]) -> None: ...

    with pytest.raises(ConfigError, match="parameter 'a' of task 't'"):
        readers("t", both)


def test_what_has_no_json_form_is_refused_where_it_is_enqueued() -> None:
    item = Item.model_construct(name="x", price=Decimal("NaN"))
    for value, said in (
        (Decimal("NaN"), "argument 'a' of task 't': NaN is not JSON"),
        ({"deep": [timedelta(1)]}, "argument 'a.deep[0]' of task 't': timedelta is not JSON"),
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
