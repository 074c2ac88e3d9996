"""What a worker calls for a job of a task, called here as if a worker did."""

import inspect
from collections.abc import Callable
from typing import Any

from rqueue.model.job import Delivery
from rqueue.tasks import app
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.task import Task
from rqueue_workers.worker.composing import composed


def for_jobs(task: Task[Any, Any]) -> Callable[..., Any]:
    """The task's function with all that runs around it, as a job that has no headers."""
    function = composed(task, tuple(app.middleware()), app.context_variables(), {})
    job = JobContext(Delivery("j", b"0,0;[]"), task.name, "q")

    def run(*args: Any, **kwargs: Any) -> Any:
        token = current.set(job)
        try:
            return function(*args, **kwargs)
        finally:
            current.reset(token)

    async def arun(*args: Any, **kwargs: Any) -> Any:
        current.set(job)
        return await function(*args, **kwargs)

    return arun if inspect.iscoroutinefunction(function) else run
