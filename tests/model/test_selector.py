"""Selectors: what they mean, where they are wrong, and that scripts evaluate them the same way."""

from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rqueue.errors import InvalidSelector
from rqueue.model.selector import class_text, label_problem, selector
from rqueue.protocol.lua_folder import find_lua

LABELS = {"gpu": True, "cpu": False, "version": 42, "region": "eu", "note": "50%_ü", "größe": 3}

TRUE = [
    "gpu", "not cpu", "gpu and version >= 42", "gpu or zone = 'x'", "zone is null",
    "gpu is not null",
    "region in ('us', 'eu')", "version in (1, 42)", "not region in ('us')", "region not in ('us')",
    "version between 42 and 50", "version not between 1 and 41", "version = 42.0", "version != 41",
    "version <> 41", "version == 42", "-1 < version", "42 = version", "4.1e1 < version", "true",
    "note like '50\\%%' escape '\\'", "note like '%ü'", "note like '50__ü'", "note not like 'x%'",
    "größe > 2", "GPU is null", '"gpu" AND Version IS NULL', "region = 'eu' and (cpu or gpu)",
    "cpu = false", "region <> 'us'", "version = version", "not (cpu or zone = 1) or gpu",
]  # fmt: skip

NOT_TRUE = [
    "cpu", "not gpu", "zone", "not zone", "zone = 1", "not (zone = 1)", "zone <> 1", "region",
    "version = '42'", "version <> '42'", "region > 1", "gpu = 1", "region = 1 or region <> 1",
    "zone in ('x')", "zone not in ('x')", "zone like '%'", "version like '4%'",
    "zone between 1 and 2",
    "region between 1 and 2", "version in ('42')", "version not in ('42')", "gpu and zone = 1",
    "note like '50x%'", "region like 'e'", "region like 'E_'", "false", "region is null",
]  # fmt: skip

WRONG = [
    ("", 1, "it is empty"),
    ("version >= and gpu", 12, "a label or a value is expected, not 'and'"),
    ("gpu and", 8, "a label or a value is expected, not the end"),
    ("(gpu", 5, "'\\)' is expected, not the end"),
    ("gpu)", 4, "'and', 'or' or the end is expected, not '\\)'"),
    ("gpu cpu", 5, "'and', 'or' or the end is expected, not 'cpu'"),
    ("gpu-type = 1", 4, "in double quotes"),
    ("region = 'eu", 10, "not closed"),
    ("region = eu'", 12, "not closed"),
    ("region > 'eu'", 14, "compared by = and <> only"),
    ("region between 'a' and 'b'", 20, "compared by = and <> only"),
    ("region in ()", 12, "a value is expected, not '\\)'"),
    ("region in ('a' 'b')", 16, "',' or '\\)' is expected, not ''b''"),
    ("region in (a)", 12, "a value is expected, not 'a'"),
    ("'eu' in ('eu')", 1, "a label is expected, not ''eu''"),
    ("42", 3, "a comparison is expected, not the end"),
    ("zone is 1", 9, "'null' is expected, not '1'"),
    ("zone not 1", 10, "'in', 'between' or 'like' is expected"),
    ("region like 1", 13, "a pattern in single quotes"),
    ("region like 'a' escape 'ab'", 24, "one character"),
    ("version = 9007199254740993", 11, "at most 2\\^53"),
    ("version = 1 + 2", 13, "'\\+' cannot stand here"),
    ("(" * 60, 51, "more than 50"),
    ("a = 1 or " * 120 + "b", 1000, "longer than 1000"),
    ("a=1 or " * 140 + "b", 1, "parts; at most 300"),
]


@pytest.mark.parametrize("text", TRUE)
def test_it_matches(text: str) -> None:
    assert selector(text).matches(LABELS)


@pytest.mark.parametrize("text", NOT_TRUE)
def test_it_does_not_match(text: str) -> None:
    assert not selector(text).matches(LABELS)


@pytest.mark.parametrize(("text", "column", "problem"), WRONG)
def test_an_error_names_the_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(InvalidSelector, match=f"select: column {column}: .*{problem}") as error:
        selector(text)
    assert error.value.column == column


def test_an_error_points_at_it() -> None:
    with pytest.raises(InvalidSelector) as error:
        selector("gpu and version >=")
    assert str(error.value).splitlines()[1:] == ["  gpu and version >=", " " * 20 + "^"]


def test_the_same_expression_has_one_form() -> None:
    assert selector("a=1 AND (b)").postfix == selector("( a == 1.0e0 ) and b").postfix.replace(
        "n1.0", "n1"
    )


def test_a_set_of_labels_has_one_text() -> None:
    one = class_text({"b": 1, "a": "x:+y|;,", "c": False})
    assert one == class_text({"c": False, "a": "x:+y|;,", "b": 1})
    assert one == "a:sx%3A%2By%7C%3B%2C+b:n1+c:f"
    assert class_text({}) == ""
    assert label_problem({"a": 1}) == ""


names = st.sampled_from(["a", "b", "größe", "x.y"])
values = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "a", "ab", "ba", "aab", "ü", "%", "a_b", "*.", "'"]),
)
literals = values.map(
    lambda v: (
        str(v).lower()
        if isinstance(v, bool)
        else str(v)
        if isinstance(v, int)
        else "'" + v.replace("'", "''") + "'"
    )
)
numbers = st.integers(-3, 3).map(str) | st.sampled_from(["0.5", "-1.5", "1e0"])
labels = st.dictionaries(names, values, max_size=3)
patterns = st.text("a%_bü", max_size=6).map(lambda text: f"'{text}'")


@st.composite
def conditions(draw: Any) -> str:
    name = draw(names)
    kind = draw(st.integers(0, 6))
    no = draw(st.sampled_from(["", "not "]))
    if kind == 0:
        return f"{name} {draw(st.sampled_from(['=', '<>']))} {draw(literals | names)}"
    if kind == 1:
        return f"{name} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {draw(numbers | names)}"
    if kind == 2:
        return f"{name} {no}in ({', '.join(draw(st.lists(literals, min_size=1, max_size=3)))})"
    if kind == 3:
        return f"{name} is {no}null"
    if kind == 4:
        return f"{name} {no}between {draw(numbers)} and {draw(numbers)}"
    if kind == 5:
        return f"{name} {no}like {draw(patterns)}"
    return str(name)


expressions = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=6,
)


@pytest.fixture
def evaluate(server: Any) -> Any:
    """The script's evaluation of many, [postfix, class, ...]."""
    text = (Path(str(find_lua())) / "include/selector/evaluate.lua").read_text(encoding="utf-8")
    text += """
local out = {}
for i = 1, #ARGV, 2 do
  local said = evaluate(ARGV[i], evaluate_labels(ARGV[i + 1]))
  out[#out + 1] = said == nil and 'wrong' or said and 'yes' or 'no'
end
return out"""
    client = redis.Redis.from_url(server.url)
    yield lambda *args: [word.decode() for word in client.eval(text, 0, *args)]
    client.close()


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cases=st.lists(st.tuples(expressions, labels), min_size=1, max_size=20))
def test_scripts_say_the_same(cases: list[tuple[str, dict[str, Any]]], evaluate: Any) -> None:
    args, expected = [], []
    for text, known in cases:
        read = selector(text)
        args += [read.postfix, class_text(known)]
        expected.append("yes" if read.matches(known) else "no")
    assert evaluate(*args) == expected, list(zip(cases, expected, strict=True))


def test_what_makes_no_expression_is_none(evaluate: Any) -> None:
    wrong = ["", "&", "la lb", "la &", "la lb & !!x lc", "=", "n1 <"]
    assert evaluate(*(word for text in wrong for word in (text, ""))) == ["wrong"] * len(wrong)


def test_patterns_cost_no_more_than_their_length(evaluate: Any) -> None:
    pattern = "'" + "%a" * 60 + "b'"
    assert selector(f"x like {pattern}").matches({"x": "a" * 300}) is False
    assert evaluate(selector(f"x like {pattern}").postfix, class_text({"x": "a" * 300})) == ["no"]
