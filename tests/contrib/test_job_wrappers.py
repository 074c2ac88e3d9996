"""What an application puts around its jobs: composed once for each task, in order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rqueue.contrib.job_wrappers import around_jobs
from rqueue.errors import BadArguments
from rqueue.model.envelope import pack
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue_workers.worker.attempt import _misfit
from rqueue_workers.worker.task_plans import MAIN, Plan
from tests.support.composed_jobs import for_jobs


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What two wrappers did, in order."""
    said: list[str] = []

    def around(name: str) -> Any:
        @contextmanager
        def one() -> Iterator[None]:
            said.append(f"{name} begins")
            try:
                yield
            except ValueError:
                said.append(f"{name} sees an error")
                raise
            said.append(f"{name} ends")

        return one

    with around_jobs(around("outer")), around_jobs(around("inner")):
        yield said


def test_the_first_is_the_outermost(said: list[str]) -> None:
    def work(number: int) -> int:
        said.append("works")
        return 10 // number

    made = task(registry=Registry())(work)
    assert for_jobs(made)(5) == 2
    assert said == ["outer begins", "inner begins", "works", "inner ends", "outer ends"]
    said.clear()
    assert made(5) == 2 and said == ["works"], "a plain call is one of the function"
    said.clear()
    with pytest.raises(ZeroDivisionError):
        for_jobs(made)(0)
    assert said == ["outer begins", "inner begins", "works"]


def test_around_an_async_task(said: list[str]) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        said.append("works")
        raise ValueError

    with pytest.raises(ValueError):
        asyncio.run(for_jobs(task(registry=Registry())(work))())
    assert said == [
        "outer begins",
        "inner begins",
        "works",
        "inner sees an error",
        "outer sees an error",
    ]


def test_a_call_that_does_not_fit_is_known_behind_wrappers(said: list[str]) -> None:
    """Else it would be tried again and again, as an error of the function."""

    def work(number: int) -> None: ...

    made = task(registry=Registry(), name="t")(work)
    function = for_jobs(made)
    plan = Plan("t", function, MAIN, made.runs, check=made.check)
    with pytest.raises(TypeError) as raised:
        function(1, 2)
    value = b"1,2;" + pack("t", [1, 2], {}, None, ())
    assert isinstance(_misfit(plan, value, raised.value), BadArguments)
