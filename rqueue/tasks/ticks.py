"""Periodic jobs that ask for their tick: `tick: Tick | None = None` among a task's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

from rqueue.model.tick import Tick
from rqueue.tasks.context import current_job

__all__ = ["tick_parameter", "with_tick"]


def tick_parameter(function: Callable[..., Any]) -> str:
    """The name of the parameter whose annotation is `Tick`, or `Tick | None`; "" where there is
    none."""
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if annotation is Tick or Tick in get_args(annotation):
            return name
        if isinstance(annotation, str):
            words = annotation.replace("Optional[", "").replace("]", "").split("|")
            if any(word.strip().rpartition(".")[2] == "Tick" for word in words):
                return name
    return ""


def with_tick(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a worker calls it: it is given its job's tick, None where the job is none of
    a schedule, unless its caller said another one."""
    name = tick_parameter(function)
    if not name:
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        job = current_job()
        if name not in kwargs and job is not None:
            kwargs[name] = job.tick
        return function(*args, **kwargs)

    return call
