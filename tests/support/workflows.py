"""Small workflows, and the consumer that runs them."""

from __future__ import annotations

from typing import Any

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.protocol import commands
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.tasks.workflow import Workflow
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids

registry = Registry()


@task(name="double", registry=registry)
def double(number: int) -> int:
    return 2 * number


@task(name="plus", registry=registry)
def plus(one: int, other: int) -> int:
    return one + other


@task(name="total", registry=registry)
def total(numbers: list[int]) -> int:
    return sum(numbers)


@task(name="listed", registry=registry)
def listed(what: Any) -> list[Any]:
    return [what]


@task(name="fails", registry=registry)
def fails(*_: Any) -> None:
    raise ValueError("no such page")


def step(q: QueueFixture, c: Consumer) -> list[str]:
    """What is ready now runs, and is settled; its ids."""
    jobs = c.pull()
    for job in jobs:
        call = q.queue.envelope(job)
        try:
            result = registry.get(call.task).function(*call.args, **call.kwargs)
        except ValueError as error:
            c.reject(job, str(error), "exception")
        else:
            c.ack(job, result)
    assert invariants.of_state(q.look()) == []
    return ids(jobs)


def run(q: QueueFixture, c: Consumer) -> list[str]:
    """Until nothing is ready; all ids in their order."""
    done: list[str] = []
    while now := step(q, c):
        done += now
    return done


def send(q: QueueFixture, workflow: Workflow[Any], id: str = "w") -> WorkflowHandle[Any]:
    handle = q.queue.enqueue_workflow(workflow, id=id)
    assert invariants.of_state(q.look()) == []
    return handle


def states(q: QueueFixture, *names: str) -> list[str]:
    return [str(q.queue.job(name).state()) for name in names]


def nothing_is_kept(q: QueueFixture) -> bool:
    keys = q.look().keys
    return not [
        key
        for key in keys
        if key.split(":")[0] in ("deferred", "edges", "gathered", "heard", "stops", "unsealed")
    ]


def requeue(q: QueueFixture, id: str) -> None:
    execute(q.queue.redis, commands.requeue(q.queue.keys, [id]))
