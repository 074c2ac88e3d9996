"""Periodic jobs that ask for their tick: `tick: Tick | None = None` among a task's parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rqueue.tasks.context import current_job
from rqueue.tasks.depends import tick_parameter

__all__ = ["with_tick"]


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
