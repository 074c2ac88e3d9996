"""A wrong type, given to anything public, is refused by name, with what to pass instead.

The parameters are those of the signatures themselves, so that one added later is swept too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
import redis

import rqueue
from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, InvalidName, RQueueError
from rqueue.protocol.credit import GrantCredit, SharedCredit, WindowCredit
from rqueue.protocol.job_packer import Call
from rqueue.settings import Settings
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.retry import RetryPolicy


class Wrong:
    """What nobody would pass, and what nobody can use."""

    def __repr__(self) -> str:
        return "<wrong>"


FREE = {
    ("enqueue", "args"), ("enqueue", "kwargs"), ("put", "args"), ("put", "kwargs"),
    ("putter", "on_error"), ("reject", "job"), ("Reject", "reason"), ("Retry", "reason"),
    ("Snooze", "reason"),
    ("enqueue_in", "args"),
    ("enqueue_in", "kwargs"),
    ("enqueue_at", "args"),
    ("enqueue_at", "kwargs"),
}  # fmt: skip
"""Where anything goes."""


def in_a_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    async def run(*args: Any, **given: Any) -> Any:
        return function(*args, **given)

    return wraps(function)(lambda *args, **given: asyncio.run(run(*args, **given)))


def subjects(queue: Queue) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Everything that is called with more than a job's arguments, and a call that works."""

    def add(a: int) -> int:
        return a

    add_task = task(name="add", registry=Registry())(add)
    yield "task", lambda **given: task(**{"registry": Registry(), "name": "x", **given})(add), {}
    yield "options", add_task.options, {}
    yield "Options", Options, {}
    yield "RetryPolicy", RetryPolicy, {}
    yield "Retry", Retry, {}
    yield "Snooze", Snooze, {"seconds": 1}
    yield "enqueue_in", add_task.enqueue_in, {"seconds": 1}
    yield "enqueue_at", add_task.enqueue_at, {"when": 2e9}
    yield "Call", lambda **given: Call(**{"task": "t", **given}).resolve(), {"task": "t"}
    yield "Settings", Settings, {}
    yield "Queue", Queue, {"url": "redis://localhost"}
    yield "send", queue.send, {"task": "t"}
    yield "enqueue", queue.enqueue, {"task": "t"}
    yield "enqueue_many", queue.enqueue_many, {"calls": []}
    yield "job", queue.job, {"id": "x"}
    yield "cancel", queue.cancel, {"id": "x"}
    yield "at", queue.at, {"name": "x"}
    yield "configure", queue.configure, {}
    yield "consumer", queue.consumer, {"renew": False}
    yield "putter", queue.putter, {}
    yield "result", queue.job("x").result, {}
    yield "WindowCredit", WindowCredit, {}
    yield "GrantCredit", GrantCredit, {}
    yield "SharedCredit", SharedCredit, {"jobs": 1}
    yield "rqueue.queue", rqueue.queue, {"name": "x"}
    yield "rqueue.aqueue", in_a_loop(rqueue.aqueue), {"name": "x"}
    yield "rqueue.configure", rqueue.configure, {}
    yield "rqueue.connect", rqueue.connect, {}
    yield "Inspector", rqueue.Inspector, {"url": "redis://localhost"}


SIGNATURES: dict[str, Callable[..., Any]] = {
    "task": task, "Call": Call, "options": rqueue.Task.options,
}  # fmt: skip
CASES = [
    pytest.param(name, parameter, id=f"{name}({parameter})")
    for name, call, _ in subjects(Queue("x", "redis://localhost"))
    for parameter, what in inspect.signature(SIGNATURES.get(name, call)).parameters.items()
    if what.kind is not inspect.Parameter.VAR_KEYWORD
    if parameter not in ("self", "function") and (name, parameter) not in FREE
]


@pytest.mark.parametrize(("name", "parameter"), CASES)
@pytest.mark.usefixtures("no_defaults")
def test_a_wrong_type_is_refused_by_name(
    name: str, parameter: str, client: redis.Redis, queue_name: str
) -> None:
    queue = Queue(queue_name, redis=client)
    if name in ("rqueue.queue", "rqueue.aqueue"):
        rqueue.configure("redis://localhost")
    ((call, given),) = [(call, given) for it, call, given in subjects(queue) if it == name]
    kinds = inspect.signature(SIGNATURES.get(name, call)).parameters
    wrong: Any = Wrong()
    kind = kinds[parameter].kind
    with pytest.raises((RQueueError, TypeError, ValueError)) as caught:
        if kind is inspect.Parameter.VAR_POSITIONAL:
            call(*given.values(), wrong)
        elif kind is inspect.Parameter.POSITIONAL_ONLY or name in (
            "enqueue_in",
            "enqueue_at",
            "enqueue",
        ):
            call(wrong, 1)
        else:
            call(**{**given, parameter: wrong})
    said = str(caught.value)
    assert "<wrong>" in said or "Wrong" in said, said
    assert isinstance(caught.value, ConfigError | InvalidName) or name in ("Retry", "Snooze")
    assert len(client.keys(queue.keys.base + "*")) == 0, "nothing was stored"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda queue: queue.enqueue(len, 1), "function 'len' is no task: put @task above it"),
        (lambda queue: queue.enqueue_many([1]), "call: 1 is not a Call; pass Call(task, args"),
        (lambda queue: queue.enqueue_many(["t"]), "call: 't' is not a Call"),
        (lambda queue: queue.enqueue_many("t"), "calls: 't' is one text; pass a list of Call"),
        (lambda queue: queue.send("t", 5), "args: 5 is not a list or tuple"),
        (lambda queue: queue.send("t", "abc"), "args: 'abc' is no list; pass ['abc']"),
        (lambda queue: queue.send("t", [1], [2]), "kwargs: [2] is not a dict"),
        (lambda queue: queue.send("t", options={"priority": 1}), "is not an Options"),
        (lambda _: task(retry=3), "3 is not a RetryPolicy; pass RetryPolicy(max_deliveries=4)"),
        (lambda _: task("mail"), "'mail' is no function; options are named: @task(queue='mail')"),
        (lambda _: task(queue=5), "queue name 5 must be a str"),
        (lambda _: task(max_retries=3), "max_retries: there is no such option of a task; max"),
        (lambda _: task(colour="red"), "colour: there is no such option of a task"),
        (lambda _: task(time_limit="10"), "'10' is not a positive number of seconds; write 10"),
        (lambda _: task(keep="1h"), "keep: '1h' is not a positive number of seconds; write 3600"),
        (lambda _: Options(labels=["a"]), "labels: ['a'] is not a dict"),
    ],
)  # fmt: skip
def test_the_mistakes_of_newcomers(
    call: Callable[[Any], Any], said: str, client: redis.Redis
) -> None:
    with Queue("mistakes", redis=client) as queue, pytest.raises(RQueueError) as caught:
        call(queue)
    assert said in str(caught.value)
    assert not client.exists("rqueue:{mistakes}:meta")


def test_reject_takes_any_reason() -> None:
    assert str(Reject("no such user")) == "rejected: no such user"
