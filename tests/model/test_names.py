from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import InvalidName
from rqueue.model.names import (
    check_consumer,
    check_namespace,
    check_queue,
    check_stored_queue,
    check_task,
    tag,
    untag,
)
from rqueue.text.escape import steering

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def hash_tag(key: str) -> str:
    """What Redis Cluster hashes of a key."""
    start = key.find("{")
    end = key.find("}", start + 1)
    return key[start + 1 : end] if start >= 0 and end > start + 1 else key


@given(NAMES | st.text("{}%7D25a", min_size=1))
def test_tags_come_back_and_stay_whole(name: str) -> None:
    assert untag(tag(name)) == name
    assert hash_tag(f"rqueue:{{{tag(name)}}}:ready:4") == tag(name)


@given(st.lists(st.text("{}%7D25", min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_tag(names: list[str]) -> None:
    assert tag(names[0]) != tag(names[1])


@given(NAMES.filter(lambda name: len(name) <= 200))
def test_any_text_without_control_characters_is_a_name(name: str) -> None:
    assert check_stored_queue(name) == name, "what is stored can be looked at"
    for check in (check_queue, check_task, check_consumer):
        if steering(name):
            with pytest.raises(InvalidName, match=r"control character U\+") as caught:
                check(name)
            assert not steering(str(caught.value))
        else:
            assert check(name) == name


@pytest.mark.parametrize("check", [check_queue, check_task, check_consumer])
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("x" * 201, "has 201 characters"),
        ("a\0b", "NUL|U\\+0000"),
        ("a\nb", "U\\+000A"),
        ("a\u2066b", "U\\+2066"),
        ("\ud800", "lone surrogate|U\\+D800"),
        (b"q", "not bytes"),
        (None, "not NoneType"),
    ],
)
def test_names_that_do_not_fit(check: Callable[[str], str], name: str, problem: str) -> None:
    with pytest.raises(InvalidName, match=problem):
        check(name)


def test_namespaces() -> None:
    assert check_namespace("rqueue") == "rqueue"
    assert check_namespace("shop/prod:1.0") == "shop/prod:1.0"
    for name in ("", "a{b", "a}b", "a b", "x" * 65, "é", "a\n"):
        with pytest.raises(InvalidName):
            check_namespace(name)
