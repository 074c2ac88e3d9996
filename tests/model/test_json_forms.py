"""Scalars and positions: what is written is read again, as the same value of the same type."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.model.envelope import decode_result, encode_result
from rqueue.model.json_forms import FORMS, form_of, typed, untyped

SCALARS = {
    datetime: st.datetimes(timezones=st.none() | st.timezones()),
    date: st.dates(),
    time: st.times(),
    timedelta: st.timedeltas(),
    UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
}
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
KEYS = st.text().filter(lambda key: key[:1] != "$")
POSITIONS = st.recursive(
    st.one_of(PLAIN, *SCALARS.values()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=5,
)


def alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if type(one) is dict:
        return list(one) == list(other) and all(map(alike, one.values(), other.values()))
    return bool(one == other)


@given(st.one_of(*SCALARS.values()))
def test_a_scalar_is_read_as_it_was_written(value: Any) -> None:
    form = form_of(type(value))
    assert form is not None
    assert alike(form.read(form.write(value)), value)


@given(POSITIONS)
def test_a_position_comes_back_as_the_same_value_of_the_same_type(value: Any) -> None:
    assert alike(untyped(decode_result(encode_result(typed(value)))), value)


@pytest.mark.parametrize(
    "value",
    [float("nan"), Decimal("inf"), 2**64, b"", {1}, {1: 2}, {"$a": 1}, object(), [(1, b"")],
     PurePosixPath("/")],
)  # fmt: skip
def test_any_other_position_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="has no JSON form that comes back"):
        typed(value)


@given(st.one_of(PLAIN, st.from_regex(r"P\d*[DT]\d*S?|\d{4}-\d\d-\d\d.?\d*", fullmatch=True)))
def test_reading_anything_else_raises_value_error(value: Any) -> None:
    for form in FORMS:
        try:
            found = form.read(value)
        except ValueError:
            continue
        assert alike(form.read(form.write(found)), found)
