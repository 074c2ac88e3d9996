"""One definition that makes several functions of one name."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rqueue.errors import TaskAlreadyRegistered
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()


def logged(function: Any) -> Any:
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


def charge() -> None: ...
def refund() -> None: ...


class Charge: ...


class Refund: ...


def made(caught: Any, how: str) -> Any:
    """A function of one place that has caught this."""
    if how == "closure":
        return logged(lambda: caught) if caught is None else logged(caught)
    if how == "nested":

        def outer(inner: Any = lambda: caught) -> Any:
            return inner()

        return outer
    if how == "default":

        def with_default(x: Any = caught) -> Any:
            return x

        return with_default

    if how == "keyword":

        def with_keyword(*, x: Any = caught) -> Any:
            return x

        return with_keyword

    def given(x: Any) -> Any:
        return x

    return partial(given, caught)


DIFFERENT: list[tuple[Any, Any]] = [
    ("mail", "sms"),
    (1, 2),
    ((1, "a"), (1, "b")),
    (charge, refund),
    (Charge, Refund),
    (logged(charge), logged(refund)),
    (partial(charge), partial(refund)),
    (1, "1"),
    (None, 0),
]
ALIKE: list[tuple[Any, Any]] = [
    ("mail", "mail"),
    (charge, charge),
    (Charge(), Charge()),  # an application that its factory makes anew
    ([1], [2]),
    (logged(charge), logged(charge)),
]
HOW = ["closure", "nested", "default", "keyword", "partial"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_one_definition_that_makes_two_functions_is_refused(
    registry: Registry, how: str, one: Any, other: Any
) -> None:
    task(name="t", registry=registry)(made(one, how))
    with pytest.raises(TaskAlreadyRegistered, match="made both, with other values"):
        task(name="t", registry=registry)(made(other, how))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_a_factory_that_runs_anew_makes_the_same_function(
    registry: Registry, how: str, one: Any, other: Any
) -> None:
    task(name="t", registry=registry)(made(one, how))
    again = task(name="t", registry=registry)(made(other, how))
    assert registry.get("t") is again


def test_a_module_that_is_loaded_anew_may_have_changed(registry: Registry, tmp_path: Path) -> None:
    source = "def make(x):\n    def run(): return x\n    return run\n"
    for value in ("mail", "sms"):
        loaded: dict[str, Any] = {"__name__": "loaded"}
        exec(compile(source, str(tmp_path / "loaded.py"), "exec"), loaded)
        task(name="t", registry=registry)(loaded["make"](value))
    assert registry.get("t")() == "sms"
