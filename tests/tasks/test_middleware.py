"""Middleware, context and lifespans, as they are declared; and that their absence costs nothing."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from rqueue.errors import ConfigError
from rqueue.tasks import app
from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext
from rqueue.tasks.decorator import task
from rqueue.tasks.middleware import HOOKS, Middleware, has
from rqueue.tasks.registry import Registry
from rqueue_workers.worker.composing import composed


class Empty(Middleware):
    pass


class Around(Middleware):
    def around_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        return call()


class AsyncAround(Middleware):
    async def around_async_job(self, job: JobContext, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()


@task(name="plain", registry=Registry())
def plain(a: int, b: str = "", *rest: float, **more: list[str]) -> None: ...


@task(name="waiting", registry=Registry())
async def waiting(a: dict[str, int], b: "int | None" = None) -> None: ...


@pytest.mark.parametrize("made", [plain, waiting])
def test_without_anything_around_a_task_is_its_function(made: Any) -> None:
    """No branch, no call, no allocation more for a job: what the worker calls is the function."""
    assert composed(made, (), (), {}) is made.function
    assert composed(made, (Empty(),), (), {}) is made.function
    assert app.around_enqueues == ()


def test_a_hook_for_the_other_kind_of_task_is_no_secret() -> None:
    with pytest.raises(ConfigError, match="'waiting' is async, and Around has around_job but no a"):
        composed(waiting, (Around(),), (), {})
    with pytest.raises(
        ConfigError, match="'plain' is a plain function, and AsyncAround has around_"
    ):
        composed(plain, (AsyncAround(),), (), {})


def test_apps_add_up_and_can_be_removed() -> None:
    one, two = Around(), Empty()
    variable: ContextVar[str] = ContextVar("v")
    with App(middleware=[one], context=[variable]) as first, App(middleware=[two]) as second:
        assert app.apps() == (first, second)
        assert list(app.middleware()) == [one, two]
        assert app.context_variables() == (variable,)
        assert len(app.around_enqueues) == 1
        second.remove()
        second.remove()
        assert list(app.middleware()) == [one]
    assert app.apps() == () and app.around_enqueues == ()


def test_only_what_is_overridden_is_a_hook() -> None:
    assert [hook for hook in HOOKS if has(Around(), hook)] == ["around_job"]

    class More(Around):
        pass

    assert has(More(), "around_job") and not has(Empty(), "around_job")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"middleware": [Empty]}, "Empty is a class; Empty()"),
        ({"middleware": [1]}, "1 is not a Middleware"),
        ({"middleware": 1}, "1 is not a list of Middleware"),
        ({"context": ["tenant"]}, "'tenant' is no ContextVar; pass it itself"),
        ({"lifespan": 5}, "5 is no context manager's function"),
    ],
)
def test_an_app_that_is_declared_wrongly(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        App(**given)
    assert said in str(caught.value)
    assert app.apps() == ()


def hook(name: str, function: Callable[..., Any]) -> None:
    type("Mine", (Middleware,), {name: function})


async def wait(*_: Any) -> None: ...


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("around_jobs", print, "Mine.around_jobs is no hook; did you mean around_job?"),
        ("before_process_message", print, "is no hook; there are around_job, "),
        ("around_job", wait, "Mine.around_job is async: around async jobs is around_async_job"),
        ("around_async_job", print, "is no 'async def' function"),
        ("on_dead", wait, "Mine.on_dead is async: nobody could await it there"),
        ("around_enqueue", wait, "is async"),
    ],
)
def test_a_hook_that_is_none(name: str, function: Callable[..., Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        hook(name, function)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hook", "said"),
    [
        ("around_job", lambda self, call: call(), "write def around_job(self, job, call)"),
        ("around_job", staticmethod(lambda job: None), "is called with (job, call)"),
        ("around_enqueue", lambda self, request: None, "is called with (self, request, call)"),
        ("job_scope", lambda self: None, "write def job_scope(self, job)"),
        ("startup", lambda self: None, "write def startup(self, worker)"),
        ("on_retry", lambda self, job, error: None, "write def on_retry(self, job, error, delay)"),
        ("on_dead", None, "on_dead is None, which is no function"),
    ],
)
def test_a_hook_that_does_not_take_what_it_is_given(name: str, hook: Any, said: str) -> None:
    """Else each job would fail by it, and become a dead letter."""
    with pytest.raises(ConfigError) as caught:
        type("Wrong", (Middleware,), {name: hook})
    assert str(caught.value).startswith(f"middleware: Wrong.{name}")
    assert said in str(caught.value)


def test_a_hook_may_take_more_than_it_is_given() -> None:
    class More(Middleware):
        def around_job(self, *args: Any, **kwargs: Any) -> Any: ...

        @classmethod
        def on_dead(cls, job: JobContext, error: BaseException, note: str = "") -> None: ...

    assert has(More(), "around_job") and has(More(), "on_dead")


def test_a_lifespan_that_does_not_take_the_worker() -> None:
    with pytest.raises(
        ConfigError, match=r"lifespan: it takes \(\), .*; write def lifespan\(worker"
    ):
        App(lifespan=lambda: None)  # type: ignore[arg-type, misc, return-value]
    assert app.apps() == ()
