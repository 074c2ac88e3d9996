import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import NotEncodable, Undecodable
from rqueue.model.envelope import (
    Envelope,
    decode_result,
    encode_result,
    pack,
    parse_record,
    unpack,
)
from rqueue.model.job import JobState

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@dataclass
class Point:
    x: float
    _hidden: Any = 0


class Pair(NamedTuple):
    a: int
    b: int


class Odd(Enum):
    NAN = math.nan
    NOTHING = None
    TWO = (1, 2)


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


class Safe(str):
    pass


class Real(float):
    pass


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


LOOP: list[Any] = []
LOOP.append(LOOP)


@given(TEXT, st.lists(JSON, max_size=3), st.dictionaries(TEXT, JSON, max_size=3))
def test_envelopes_come_back(task: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """C-22."""
    assert unpack(pack(task, args, kwargs)) == (task, args, kwargs, {})
    assert unpack(pack(task, tuple(args), kwargs, {"time_limit": 2.0})) == (
        task,
        args,
        kwargs,
        {"time_limit": 2.0},
    )


def test_empty_trailing_parts_are_left_out() -> None:
    assert pack("t") == b'["t"]'
    assert pack("t", (), {}, {}) == b'["t"]'
    assert pack("t", (1,)) == b'["t",[1]]'
    assert pack("t", (), {"a": 1}) == b'["t",[],{"a":1}]'
    assert pack("t", (), None, {"keep": 1.0}) == b'["t",[],{},{"keep":1.0}]'
    assert Envelope("t", (1,)).encode() == b'["t",[1]]'
    assert Envelope.decode(b'["t",[1]]') == ("t", [1], {}, {})


def test_values_with_one_obvious_json_form() -> None:
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    args = (
        (1, 2),
        Word.A,
        Odd.TWO,
        Odd.NOTHING,
        moment,
        date(2030, 1, 2),
        time(3, 4),
        UUID(int=5),
        Point(1.5, _hidden="kept"),
        timedelta(days=1, seconds=2.5),
        Decimal("1.50"),
        PurePosixPath("/x"),
        {3, 1, 2},
        frozenset(["b", "a"]),
        Pair(1, 2),
        Safe("b"),
        {Word.A: 1, Safe("b"): 2, date(2030, 1, 2): {UUID(int=5): [Pair(1, (2,))]}},  # type: ignore[arg-type]
    )
    assert unpack(pack("t", args))[1] == [
        [1, 2],
        "a",
        [1, 2],
        None,
        "2030-01-02T03:04:05+00:00",
        "2030-01-02",
        "03:04:00",
        "00000000-0000-0000-0000-000000000005",
        {"x": 1.5, "_hidden": "kept"},
        "P1DT2.5S",
        "1.50",
        "/x",
        [1, 2, 3],
        ["a", "b"],
        {"a": 1, "b": 2},
        "b",
        {
            "a": 1,
            "b": 2,
            "2030-01-02": {"00000000-0000-0000-0000-000000000005": [{"a": 1, "b": [2]}]},
        },
    ]


@pytest.mark.parametrize(
    ("value", "where", "problem"),
    [
        (b"x", "user", "bytes is not JSON; pass text, for instance base64"),
        ({"created": b"x"}, "user.created", "bytes is not JSON"),
        ([1, {"a b": [b"x"]}], "user[1]['a b'][0]", "bytes is not JSON; pass text"),
        (Point(Decimal("NaN")), "user.x", "NaN is not JSON; pass None or text"),  # type: ignore[arg-type]
        (np.int64(1), "user", r"numpy.int64 is not JSON; pass value.item\(\)"),
        (np.float64(1), "user", r"numpy.float64 is not JSON; pass value.item\(\)"),
        (np.bool_(True), "user", r"numpy.bool is not JSON; pass value.item\(\)"),
        ({"a": np.int8(1)}, "user.a", r"numpy.int8 is not JSON; pass value.item\(\)"),
        (np.array([1]), "user", r"numpy.ndarray is not JSON; pass a list \(.tolist\(\)\)"),
        ({np.int64(1): 1}, "user", "is a numpy.int64; JSON has str keys only"),
        ({b"x": 1}, "user", "is a bytes; JSON has str keys only"),
        ({Number.ONE: 1}, "user", "Number; JSON has str keys only"),
        ({date(2030, 1, 1): 1, "2030-01-01": 2}, "user", "two keys have the JSON form"),
        (Real(1), "user", r"pass float\(value\)"),
        pytest.param(object(), "user", "object is not JSON; pass its id", id="object"),
        (Point, "user", "type is not JSON"),
        ({1: "x"}, "user", "dict key 1 is an int; JSON has str keys only"),
        (2**64, "user", "beyond 64 bits"),
        ([-(2**63) - 1], "user[0]", "beyond 64 bits"),
        (math.nan, "user", "nan is not JSON"),
        ({"rate": -math.inf}, "user.rate", "-inf is not JSON"),
        (Point(math.inf), "user.x", "inf is not JSON"),
        ([None, (1.0, math.nan)], "user[1][1]", "nan is not JSON"),
        (Odd.NAN, "user", "nan is not JSON"),
        ("\ud800", "user", "lone surrogate"),
        ({"\ud800": 1}, "user", "lone surrogate"),
        (time(1, tzinfo=UTC), "user", "time zone"),
    ],
    ids=repr,
)
def test_the_argument_at_fault_is_named(value: Any, where: str, problem: str) -> None:
    with pytest.raises(NotEncodable, match=problem) as by_position:
        pack("mail.send", ("fine", value), parameters=("to", "user"))
    assert by_position.value.argument == where
    assert by_position.value.task == "mail.send"
    with pytest.raises(NotEncodable, match=problem) as by_name:
        pack("mail.send", ("null", None), {"other": None, "user": value})
    assert by_name.value.argument == where
    with pytest.raises(NotEncodable, match=problem):
        pack("mail.send", (), None, {"x": value})


def test_the_message_reads_well() -> None:
    with pytest.raises(NotEncodable) as caught:
        pack("x", (), {"user": {"created": b"x"}})
    assert str(caught.value) == (
        "argument 'user.created' of task 'x': bytes is not JSON; pass text, for instance base64"
    )


@pytest.mark.parametrize("value", [LOOP, deep(300)], ids=["loop", "deep"])
def test_what_is_nested_too_deeply_is_named(value: Any) -> None:
    with pytest.raises(NotEncodable, match="or contains itself") as caught:
        pack("t", (value,), parameters=("tree",))
    assert caught.value.argument.startswith("tree[0]")


def test_deep_values_with_a_null_are_no_problem_to_check() -> None:
    assert unpack(pack("t", ([None, deep(240)],)))[1] == [[None, deep(240)]]


def test_positional_arguments_without_a_name() -> None:
    with pytest.raises(NotEncodable, match="argument '#2'"):
        pack("t", (1, b"x"))
    with pytest.raises(NotEncodable, match=r"argument 'rest\[1\]'"):
        pack("t", (1, 2, b"x"), parameters=("a", "*rest"))


@given(st.lists(st.floats(), max_size=4), st.dictionaries(TEXT, st.floats() | st.none()))
def test_a_float_comes_back_or_is_refused(args: list[float], kwargs: dict[str, Any]) -> None:
    numbers = [*args, *kwargs.values()]
    finite = all(number is None or math.isfinite(number) for number in numbers)
    try:
        body = pack("t", args, kwargs)
    except NotEncodable:
        assert not finite
        return
    assert finite
    assert unpack(body)[1:3] == (args, kwargs)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"{}",
        b"[]",
        b"[1]",
        b'[2,"t"]',
        b'[["t"]]',
        b'"t"',
        b'{"t":[]}',
        b'["t",{}]',
        b'["t",[],[]]',
        b'["t",[],{},[]]',
        b'["t",[],{},{},1]',
        b"S",
        b"Sk.m",
        b"Sk.m.",
        b"S\xff.m.[]",
        b"\x80\x04K\x01.",
    ],
)
def test_what_is_no_envelope(body: bytes) -> None:
    with pytest.raises(Undecodable):
        unpack(body)


@given(st.binary() | st.binary().map(lambda tail: b"S" + tail))
def test_any_bytes_are_an_envelope_or_undecodable(body: bytes) -> None:
    """C-21."""
    try:
        task, args, kwargs, opts = unpack(body)
    except Undecodable:
        return
    assert (type(task), type(args), type(kwargs), type(opts)) == (str, list, dict, dict)


# -- results ---------------------------------------------------------------------------------------


@given(JSON)
def test_results_come_back(value: Any) -> None:
    assert decode_result(encode_result(value)) == value


def test_nothing_is_kept_of_none() -> None:
    assert encode_result(None) == b""
    assert encode_result(Odd.NOTHING) == b""
    assert decode_result(b"") is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", "result of task 't': bytes is not JSON; pass text, for instance base64"),
        ({"a": [math.nan]}, "result of task 't': a[0]: nan is not JSON; pass None or text"),
        (math.inf, "result of task 't': inf is not JSON; pass None or text"),
    ],
)
def test_results_that_are_not_json(value: Any, message: str) -> None:
    with pytest.raises(NotEncodable) as caught:
        encode_result(value, "t")
    assert str(caught.value) == message


def test_a_broken_result() -> None:
    with pytest.raises(Undecodable):
        decode_result(b"{")


def test_the_envelope_is_plain_json() -> None:
    assert orjson.loads(pack("t", (1,), {"a": 2})) == ["t", [1], {"a": 2}]


@pytest.mark.parametrize(
    ("letter", "state"),
    [
        ("D", JobState.DONE),
        ("F", JobState.DEAD),
        ("C", JobState.CANCELLED),
        ("P", JobState.PURGED),
        ("E", JobState.EXPIRED),
        ("R", JobState.DISPLACED),
        ("M", JobState.MOVED),
    ],
)
def test_records(letter: str, state: JobState) -> None:
    record = parse_record(f"{letter}1700000000000:a:b".encode())
    assert record == (state, 1700000000000, b"a:b")
    assert state.ended


@pytest.mark.parametrize("record", [b"", b"D", b"D:", b"D12", b"X12:", b"D1x:", b":"])
def test_broken_records(record: bytes) -> None:
    with pytest.raises(Undecodable):
        parse_record(record)
