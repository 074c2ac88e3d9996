"""The same tasks with one empty middleware around their jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.apps import tasks
from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext
from rqueue.tasks.middleware import Middleware

__all__ = ["app", "tasks"]


class Empty(Middleware):
    """Around jobs, and nothing else."""

    def around_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        """The job."""
        return call()

    async def around_async_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        """The job."""
        return await call()


app = App(middleware=[Empty()])
