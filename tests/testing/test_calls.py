"""A call reaches its function as it was given, or is a dead letter at once."""

from typing import Any

import pytest

import rqueue as rq
from rqueue import Depends, RetryPolicy, Tick, Unique, current_job, task
from rqueue.errors import BadArguments, JobFailed
from rqueue.testing import Harness

NAMES = (
    *("self", "cls", "args", "kwargs", "task", "function", "name", "steps", "call", "attempt"),
    *("id", "queue", "options", "context", "job", "value", "seconds", "when", "callable", "func"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_have_any_name(queues: Harness, name: str) -> None:
    made: dict[str, Any] = {"current_job": current_job, "double": lambda **given: given}
    exec(f"def f({name}): return current_job().step('s', double, {name}={name})", made)
    plain: dict[str, Any] = {}
    exec(f"def f({name}): return {name}", plain)
    kept = task(name="kept")(made["f"])
    works = task(name="t", unique=Unique(name))(plain["f"])
    given: dict[str, Any] = {name: 7}
    jobs = [works.enqueue(**given), works.enqueue_in(0, **{name: 8}), kept.enqueue(**given)]
    assert works.unique_key(**given) == works.unique_key(**given)
    queues.drain()
    queues.travel("1s")
    assert [job.result(timeout=0) for job in jobs] == [7, 8, {name: 7}]
    assert works(**given) == queues.run_job(works, **given) == 7
    assert works.options(unique=False).s(**given).kwargs == works.si(**given).kwargs == given


def connection() -> str:
    return "connection"


def fills_nothing(x: int) -> int:
    return x


def fills_a_tick(x: int, tick: Tick | None = None) -> int:
    return x


def fills_a_dependency(x: int, db: str = Depends(connection)) -> int:
    return x


def fills_both(x: int, db: str = Depends(connection), tick: Tick | None = None) -> int:
    return x


FILLED = [fills_nothing, fills_a_tick, fills_a_dependency, fills_both]


@pytest.mark.parametrize("function", FILLED)
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [([], {}), ([1, 2], {}), ([1, 2, 3, 4], {}), ([1], {"x": 1}), ([1], {"y": 1}),
     ([1], {"tick": None}), ([1], {"db": ""})],
)  # fmt: skip
def test_a_call_that_does_not_fit_is_dead_at_once(
    queues: Harness, function: Any, args: list[Any], kwargs: dict[str, Any]
) -> None:
    works = task(name="t", retry=RetryPolicy(max_deliveries=3, delay=0))(function)
    with pytest.raises(BadArguments):
        works.enqueue(*args, **kwargs)
    job = rq.queue("default").send("t", args, kwargs)
    queues.drain(raises=False)
    with pytest.raises(JobFailed) as caught:
        job.result(timeout=0)
    assert (caught.value.attempts, caught.value.type) == (1, "rqueue.errors.BadArguments")


def test_a_type_error_of_the_function_itself_is_tried_again(queues: Harness) -> None:
    @task(name="t", retry=RetryPolicy(max_deliveries=3, delay=0))
    def works(x: int) -> None:
        raise TypeError("its own")

    works.enqueue(1)
    assert queues.drain(raises=False).ran == 3
