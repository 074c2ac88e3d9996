"""Django's tasks, as a project writes them."""

import asyncio
import sys
from typing import Any

import django

if django.VERSION < (6,):
    from django_tasks import task
    from django_tasks.signals import task_finished, task_started
else:
    from django.tasks import task
    from django.tasks.signals import task_finished, task_started


@task()
def multiply(a: int, b: int = 2) -> int:
    return a * b


@task()
async def amultiply(a: int, b: int = 2) -> int:
    await asyncio.sleep(0)
    return a * b


@task(takes_context=True)
def describe(context: Any) -> list[Any]:
    result = context.task_result
    return [result.id, context.attempt, result.status, result.task.priority, len(result.errors)]


@task()
def fail() -> None:
    raise LookupError("nothing there")


@task()
def strange() -> Any:
    return multiply


@task(backend="patient", takes_context=True)
def second_time(context: Any) -> int:
    if context.attempt < 2:
        raise LookupError("not yet")
    return int(context.attempt)


@task(backend="patient")
def never() -> None:
    raise LookupError("never")


def say(*words: str) -> None:
    # one write: `print` writes the end of its line by itself, and threads tell at the same time
    sys.stdout.write(" ".join(("signal", *words)) + "\n")
    sys.stdout.flush()


def say_started(task_result: Any, **_: Any) -> None:
    say("started", task_result.task.name, task_result.status)


def say_finished(task_result: Any, **_: Any) -> None:
    say("finished", task_result.task.name, task_result.status)


task_started.connect(say_started)
task_finished.connect(say_finished)
