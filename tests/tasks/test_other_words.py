"""What newcomers from other queues write gets an error that names our word for it."""

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rqueue.errors import BadArguments, ConfigError
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.other_words import METHOD_WORDS
from rqueue.tasks.registry import Registry


@pytest.fixture
def welcome() -> Any:
    @task(name="welcome", registry=Registry())
    def welcome(user: int = 0) -> None: ...

    return welcome


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("delay", "enqueue(...) for now, enqueue_in(seconds, ...) for later"),
        ("adelay", "aenqueue(...) for now, aenqueue_in(seconds, ...) for later"),
        ("apply_async", ".options(...).enqueue(...)"),
        ("send", "enqueue(...)"),
        ("schedule", "enqueue_in(seconds, ...)"),
        ("kiq", "enqueue(...)"),
    ],
)
def test_methods_of_other_queues_are_no_methods(welcome: Any, name: str, ours: str) -> None:
    for made in (welcome, welcome.options(priority=1)):
        with pytest.raises(AttributeError) as caught:
            getattr(made, name)(5)
        assert str(caught.value).startswith(f"task 'welcome' has no attribute '{name}'; here it is")
        assert ours in str(caught.value)
        assert not hasattr(made, name)


def test_no_word_of_others_is_a_word_of_ours() -> None:
    assert not [name for name in METHOD_WORDS if name in vars(BoundTask)]


def test_other_attributes_are_missing_as_usual(welcome: Any) -> None:
    with pytest.raises(AttributeError, match=r"^task 'welcome' has no attribute 'colour'$"):
        _ = welcome.colour
    with pytest.raises(AttributeError):
        _ = BoundTask().name  # of one that is not made yet
    assert copy.copy(welcome).name == "welcome"


OPTIONS: list[tuple[str, Callable[[Any, dict[str, Any]], Any]]] = [
    ("a task", lambda _, given: task(registry=Registry(), **given)),
    ("a call", lambda welcome, given: welcome.options(**given)),
    ("a job", lambda _, given: Options(**given)),
]


@pytest.mark.parametrize(("what", "call"), OPTIONS, ids=[what for what, _ in OPTIONS])
@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("job_timeout", "time_limit is in seconds"),
        ("soft_limit", "soft_time_limit is in seconds"),
        ("timeout", "time_limit is in seconds"),
        ("max_retries", "max_deliveries counts the first attempt too"),
        (
            "countdown",
            "a call is delayed by enqueue_in(seconds, ...), or the option"
            " at=timedelta(seconds=...)",
        ),
        ("expires", "ttl is in seconds"),
        ("priorty", "did you mean priority?"),
    ],
)
def test_options_of_other_queues_are_no_options(
    welcome: Any, what: str, call: Callable[[Any, dict[str, Any]], Any], option: str, ours: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        call(welcome, {option: 5})
    assert str(caught.value) == f"{option}: there is no such option of {what}; {ours}"


def test_an_option_that_nobody_knows(welcome: Any) -> None:
    with pytest.raises(ConfigError, match=r"^xyzzy: there is no such option of a call$"):
        welcome.options(xyzzy=1)


def test_an_option_among_the_arguments_is_named(welcome: Any) -> None:
    with pytest.raises(
        BadArguments, match=r"countdown.*\(if an option is meant: a call is delayed"
    ):
        welcome.enqueue(7, countdown=5)


def test_options_are_still_a_value() -> None:
    options = Options(time_limit=5, headers={"a": "b"})
    assert pickle.loads(pickle.dumps(options)) == copy.copy(options) == options


def test_seconds_may_be_a_timedelta(welcome: Any) -> None:
    sent = []

    class Sender:
        target = ""

        def enqueue_request(self, request: Any) -> None:
            sent.append((request.args, request.options.delay_ms))

    bound = welcome.options(sender=Sender())
    bound.enqueue_in(timedelta(minutes=2), 7)
    bound.enqueue_in(1.5)
    assert sent == [((7,), 120_000), ((), 1500)]
