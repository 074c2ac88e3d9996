import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import BadArguments
from rqueue.tasks.signature import CallChecker


def none() -> None: ...
def two(a: int, b: int = 0) -> None: ...
def only_position(a: int, b: int = 0, /) -> None: ...
def only_keyword(*, a: int, b: int = 0) -> None: ...
def mixed(a: int, /, b: int, c: int = 0, *, d: int, e: int = 0) -> None: ...
def rest(a: int, *b: int, c: int = 0) -> None: ...
def keywords(a: int, /, b: int = 0, **c: int) -> None: ...
def anything(*a: int, **b: int) -> None: ...


FUNCTIONS = [none, two, only_position, only_keyword, mixed, rest, keywords, anything]


@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.just(1), max_size=4),
    st.dictionaries(st.sampled_from("abcdef"), st.just(1)),
)
def test_it_agrees_with_python(
    function: Callable[..., Any], args: list[int], kwargs: dict[str, int]
) -> None:
    checker = CallChecker("t", function)
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(BadArguments):
            checker(tuple(args), kwargs)
    else:
        checker(tuple(args), kwargs)


def test_the_message_shows_what_fits() -> None:
    with pytest.raises(BadArguments) as caught:
        CallChecker("sums.add", two)((), {"c": 1})
    assert str(caught.value) == (
        "missing a required argument: 'a': task 'sums.add' takes (a: int, b: int = 0) -> None"
    )


def test_positional_names() -> None:
    assert CallChecker("t", mixed).positional == ("a", "b", "c")
    assert CallChecker("t", rest).positional == ("a", "*b")
    assert CallChecker("t", only_keyword).positional == ()
