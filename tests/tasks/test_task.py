import asyncio
import inspect
import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from rqueue.errors import (
    BadArguments,
    ConfigError,
    InvalidName,
    TaskAlreadyRegistered,
    UnknownTask,
)
from rqueue.tasks.decorator import task
from rqueue.tasks.enqueuer import DEFAULTS, MadeEnqueuers
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy
from rqueue.tasks.signature import OPTIONS
from rqueue.tasks.task import AsyncTask, SyncTask
from tests.support.patience import PATIENCE


class Sent:
    id = "j"
    queue = "q"
    created = True

    def result(self, timeout: float | None = None) -> Any:
        return 3


class AsyncSent:
    id = "j"
    queue = "q"
    created = True

    async def result(self, timeout: float | None = None) -> Any:
        return 3


class Calls:
    """A sender that remembers."""

    def __init__(self, target: str = "") -> None:
        self.target = target
        self.calls: list[JobRequest] = []

    def enqueue_request(self, request: JobRequest) -> Sent:
        self.calls.append(request)
        return Sent()


class AsyncCalls(Calls):
    async def enqueue_request(self, request: JobRequest) -> AsyncSent:  # type: ignore[override]
        self.calls.append(request)
        return AsyncSent()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(DEFAULTS, "enqueuers", MadeEnqueuers(lambda queue: calls))
    return calls


def test_a_plain_call_calls_the_function(registry: Registry) -> None:
    @task(registry=registry)
    def add(a: int, b: int = 0) -> int:
        """Add."""
        return a + b

    assert add(1, b=2) == 3
    assert isinstance(add, SyncTask)
    assert not add.is_async
    assert add.__doc__ == "Add."
    assert add.__name__ == "add"
    assert add.name == f"{__name__}.test_a_plain_call_calls_the_function.<locals>.add"


def test_an_async_task(registry: Registry) -> None:
    @task(registry=registry)
    async def add(a: int, b: int = 0) -> int:
        return a + b

    assert isinstance(add, AsyncTask)
    assert add.is_async
    assert asyncio.run(add(1, 2)) == 3


def test_enqueue_goes_to_the_enqueuer(registry: Registry, calls: Calls) -> None:
    @task(name="add", registry=registry, queue="sums", priority=7, max_deliveries=3)
    def add(a: int, b: int = 0) -> int:
        return a + b

    handle = add.enqueue(1, b=2)
    assert handle.result(PATIENCE) == 3
    expected = Options(priority=7, max_deliveries=3)
    assert calls.calls == [JobRequest("add", (1,), {"b": 2}, expected, ("a", "b"), "sums")]


def test_later(registry: Registry, calls: Calls) -> None:
    @task(name="add", registry=registry)
    def add(a: int) -> int:
        return a

    add.enqueue_in(1.5, 1)
    add.enqueue_at(datetime(2030, 1, 1, tzinfo=UTC), 2)
    add.enqueue_at(timedelta(minutes=1), a=3)
    add.options(at=timedelta(seconds=2)).enqueue(4)
    assert [(call[1:3], call.options.at_ms, call.options.delay_ms) for call in calls.calls] == [
        (((1,), {}), None, 1500),
        (((2,), {}), 1893456000000, None),
        (((), {"a": 3}), None, 60_000),
        (((4,), {}), None, 2000),
    ]
    assert add.defaults is NO_OPTIONS


def test_calls_go_to_the_sender_s_queue_unless_another_is_named(registry: Registry) -> None:
    mail = Calls("mail")

    @task(name="add", registry=registry, queue="sums")
    def add(a: int) -> int:
        return a

    @task(name="sub", registry=registry, sender=mail)
    def sub(a: int) -> int:
        return a

    assert add.options(sender=mail).queue == "mail"
    assert add.options(sender=mail, queue="fast").queue == "fast"
    assert add.options(sender=mail).options(priority=9).queue == "mail"
    assert add.options(sender=Calls()).queue == "sums"
    assert add.options(async_sender=AsyncCalls("post")).queue == "post"
    assert sub.queue == "mail"
    sub.enqueue(1)
    assert (mail.calls[0].queue, mail.calls[0].task) == ("mail", "sub")


def test_options_bind_a_variant(registry: Registry, calls: Calls) -> None:
    @task(name="add", registry=registry, headers={"app": "shop"})
    def add(a: int) -> int:
        return a

    other = Calls()
    urgent = add.options(queue="fast", priority=9, headers={"trace": "1"})
    urgent.options(id="one", sender=other).enqueue(1)
    urgent.enqueue(2)
    add.enqueue(3)
    both = {"app": "shop", "trace": "1"}
    assert other.calls[0].options == Options(priority=9, id="one", headers=both)
    assert calls.calls[0].queue == "fast"
    assert calls.calls[0].options == Options(priority=9, headers=both)
    assert calls.calls[1].queue == "default"
    assert calls.calls[1].options == Options(headers={"app": "shop"})


def test_what_is_decided_where_it_runs_does_not_travel(registry: Registry, calls: Calls) -> None:
    policy = RetryPolicy(delay=5, max_deliveries=4)

    @task(name="add", registry=registry, retry=policy, time_limit=9, soft_time_limit=8, keep=7)
    def add() -> None: ...

    add.enqueue()
    add.options(retry=RetryPolicy(max_deliveries=2), time_limit=3).enqueue()
    assert calls.calls[0].options == Options(max_deliveries=4)
    assert calls.calls[1].options.max_deliveries == 2
    assert calls.calls[1].options.to_opts() == {"retry": {"max_deliveries": 2}, "time_limit": 3}
    assert add.runs == Options(
        max_deliveries=4, retry=policy, time_limit=9, soft_time_limit=8, keep=7
    )


def test_asyncio(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = AsyncCalls()

    @task(name="add", registry=registry)
    async def add(a: int) -> int:
        return a

    async def enqueue() -> list[int]:
        handles = [
            await add.aenqueue(1),
            await add.aenqueue_in(2, 1),
            await add.aenqueue_at(timedelta(seconds=3), 1),
            await add.options(priority=1).aenqueue(1),
        ]
        return [await handle.result() for handle in handles]

    monkeypatch.setattr(DEFAULTS, "async_enqueuer", lambda queue: calls)
    assert asyncio.run(enqueue()) == [3, 3, 3, 3]
    assert [call.options.delay_ms for call in calls.calls] == [None, 2000, 3000, None]


def test_a_parameter_that_another_queue_would_fill_is_explained(
    registry: Registry, calls: Calls
) -> None:
    @task(name="download", registry=registry)
    async def download(ctx: object, url: str) -> None: ...

    @task(name="bound", registry=registry)
    def bound(self: object, url: str) -> None: ...

    with pytest.raises(BadArguments, match=r"'url' \(nobody passes a ctx: the job is current_job"):
        download.enqueue("https://example.com")  # type: ignore[call-arg]
    with pytest.raises(BadArguments, match=r"'url' \(nobody passes a self: the job is current_"):
        bound.enqueue("https://example.com")  # type: ignore[call-arg]
    download.enqueue({}, "https://example.com")


def test_a_wrong_call_fails_where_it_is_made(registry: Registry, calls: Calls) -> None:
    @task(name="add", registry=registry)
    def add(a: int) -> int:
        return a

    with pytest.raises(BadArguments, match="missing a required argument: 'a'"):
        add.enqueue()  # type: ignore[call-arg]
    with pytest.raises(BadArguments, match="unexpected keyword argument 'b'"):
        add.options(priority=1).enqueue_in(1, 1, b=2)  # type: ignore[call-arg]
    with pytest.raises(ConfigError):
        add.options(priority=99)

    @task(name="nothing", registry=registry)
    def nothing() -> None: ...

    with pytest.raises(BadArguments, match="too many positional arguments: task 'nothing'"):
        nothing.enqueue(1)  # type: ignore[call-arg]
    with pytest.raises(ConfigError):
        add.enqueue_in(-1, 1)
    for endless in (float("inf"), 1e300, 10**400):
        with pytest.raises(ConfigError, match="s are more than a century"):
            add.enqueue_in(endless, 1)
    with pytest.raises(InvalidName):
        add.options(queue="")
    assert calls.calls == []


def test_the_functions_own_attributes_do_not_get_in(registry: Registry) -> None:
    def add() -> None: ...

    add.queue = "its own"  # type: ignore[attr-defined]
    made = task(name="add", registry=registry)(add)
    assert made.queue == "default"


# -- the registry ----------------------------------------------------------------------------------


def test_the_registry_finds_tasks(registry: Registry) -> None:
    @task(name="sums.add", registry=registry)
    def add() -> None: ...

    assert registry.get("sums.add") is add
    assert registry.find("sums.sub") is None
    assert "sums.add" in registry
    assert list(registry) == [add]
    assert len(registry) == 1
    with pytest.raises(UnknownTask, match=r"did you mean 'sums.add'"):
        registry.get("sum.add")
    with pytest.raises(UnknownTask, match=r"no task 'x' is registered here$"):
        registry.get("x")


def test_two_functions_of_one_name_are_refused(registry: Registry) -> None:
    @task(name="add", registry=registry)
    def first() -> None: ...

    with pytest.raises(TaskAlreadyRegistered) as caught:

        @task(name="add", registry=registry)
        def second() -> None: ...

    assert caught.value.first == first.place
    assert __file__ in caught.value.first
    assert __file__ in caught.value.second
    assert caught.value.first != caught.value.second
    assert registry.get("add") is first


def test_the_same_function_again_takes_its_place(registry: Registry) -> None:
    def make() -> Any:
        @task(name="add", registry=registry)
        def add() -> None: ...

        return add

    make()
    again = make()
    assert registry.get("add") is again


def main_module(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> Any:
    module = ModuleType("__main__")
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, "__main__", module)

    def job() -> None: ...

    job.__module__ = "__main__"
    job.__qualname__ = "job"
    return job


def test_a_program_is_named_as_a_worker_imports_it(
    monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    class Spec:
        name = "shop.__main__"

    job = main_module(monkeypatch, __file__="/srv/app.py", __spec__=None)
    assert task(registry=registry)(job).name == "app.job"
    job = main_module(monkeypatch, __file__="/srv/shop/__main__.py", __spec__=Spec)
    assert task(registry=registry)(job).name == "shop.job"
    job = main_module(monkeypatch)
    with pytest.raises(ConfigError, match="interactive session"):
        task(registry=registry)(job)
    assert task(registry=registry, name="job")(job).name == "job"


def test_what_is_no_function_needs_a_name(registry: Registry) -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a

    with pytest.raises(ConfigError, match="is no function"):
        task(registry=registry)(Adder())
    made = task(registry=registry, name="adder")(Adder())
    assert made(3) == 3


def test_seconds_that_are_an_argument_and_options_that_are_keywords(registry: Registry) -> None:
    @task(registry=registry)
    def welcome(user: int) -> None: ...

    with pytest.raises(BadArguments, match=r"seconds first; did you mean enqueue\(7\)\?"):
        welcome.enqueue_in(7)
    with pytest.raises(BadArguments, match=r"seconds first; did you mean enqueue\(7\)\?"):
        asyncio.run(welcome.aenqueue_in(7))
    with pytest.raises(BadArguments, match=r"'priority' \(an option .* \.options\(priority="):
        welcome.enqueue(7, priority=3)  # type: ignore[call-arg]
    taken = set(inspect.signature(welcome.options).parameters)
    assert taken == OPTIONS


def test_a_due_time_that_is_none_is_named_as_it_was_given(registry: Registry) -> None:
    @task(registry=registry)
    def welcome() -> None: ...

    with pytest.raises(ConfigError, match=r"^at: "):
        welcome.options(at="x")  # type: ignore[arg-type]


def test_a_lambda_needs_a_name(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"the lambda in line \d+ of .*test_task .* write a def"):
        task(registry=registry)(lambda: 1)
    assert task(name="one", registry=registry)(lambda: 1).name == "one"


def test_a_task_inside_of_a_function_is_said_to_be_unknown_where_that_was_not_called(
    registry: Registry,
) -> None:
    def make() -> None:
        @task(registry=registry)
        def send() -> None: ...

    name = f"{make.__module__}.{make.__qualname__}.<locals>.send"
    with pytest.raises(UnknownTask, match=r"it is made inside of '.*test_a_task_inside"):
        registry.get(name)
    make()
    assert registry.get(name).name == name
