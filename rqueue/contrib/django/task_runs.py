"""Django's tasks in a worker: registered under the paths of their functions, run with their context
and signals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.apps import apps

from rqueue.contrib.django.backend import RqueueBackend
from rqueue.contrib.django.task_classes import (
    Task,
    TaskContext,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from rqueue.contrib.django.task_results import (
    attempts_of,
    error_of,
    kept,
    moment,
    result_id,
    task_of,
)
from rqueue.errors import LifecycleError
from rqueue.inspector.jobs import look_at_job
from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.options import NO_OPTIONS
from rqueue.tasks.registry import registry
from rqueue.tasks.retry import error_name
from rqueue.tasks.task import AsyncTask, SyncTask

__all__ = ["register_tasks"]


def register_tasks() -> None:
    """Let this worker run the Django tasks that the modules of installed apps have imported, as far
    as the backend of one of them is rqueue's."""
    homes = tuple(f"{config.name}." for config in apps.get_app_configs())
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(homes):
            for value in list(vars(module).values()):
                if isinstance(value, Task) and isinstance(value.get_backend(), RqueueBackend):
                    register(value)


def register(task: Task) -> None:
    """Let this worker run one task."""
    backend: RqueueBackend = task.get_backend()
    runs = NO_OPTIONS.merged(retry=backend.retry_of(task), **backend.runs)
    kind = AsyncTask if iscoroutinefunction(task.func) else SyncTask
    runner = _async_runner(task) if kind is AsyncTask else _runner(task)
    registry.add(kind(runner, task.module_path, task.queue_name, NO_OPTIONS, runs))


def _runner(task: Task) -> Callable[..., Any]:
    @wraps(task.func)
    def run(*args: Any, **kwargs: Any) -> Any:
        attempt = Attempt(task, args, kwargs)
        try:
            value = task.func(*attempt.context, *args, **kwargs)
            return attempt.succeeds(value)
        except BaseException as error:
            attempt.fails(error)
            raise

    return run


def _async_runner(task: Task) -> Callable[..., Any]:
    @wraps(task.func)
    async def run(*args: Any, **kwargs: Any) -> Any:
        attempt = Attempt(task, args, kwargs)
        try:
            value = await task.func(*attempt.context, *args, **kwargs)
            return attempt.succeeds(value)
        except BaseException as error:
            attempt.fails(error)
            raise

    return run


class Attempt:
    """One attempt: the task's result as it is meanwhile, and the signals about it."""

    def __init__(self, task: Task, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        job = current_job()
        if job is None:
            raise LifecycleError(f"task '{task.module_path}' is run by a worker only")
        backend: RqueueBackend = task.get_backend()
        self._sender = type(backend)
        self._policy = backend.retry_of(task)
        self._job = job
        earlier = _earlier(backend, job)
        starts = [error["started"] for error in earlier if error.get("started")]
        self._result = TaskResult(
            task=task_of(task.module_path, job.queue, backend.alias, job.headers),
            id=result_id(job.queue, job.id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=moment(job.enqueued_ms),
            started_at=moment(starts[0] if starts else job.acquired_ms),
            last_attempted_at=moment(job.acquired_ms),
            finished_at=None,
            args=list(args),
            kwargs=kwargs,
            backend=backend.alias,
            errors=[error_of(error) for error in earlier],
            worker_ids=[*(str(error.get("worker", "")) for error in earlier), job.worker],
        )
        self.context = (TaskContext(task_result=self._result),) if task.takes_context else ()
        task_started.send(sender=self._sender, task_result=self._result)

    def succeeds(self, value: Any) -> dict[str, Any]:
        """The function returned: what the job keeps. Raises TypeError for what has no JSON form."""
        value = normalize_json(value)
        found = kept(self._result, value)
        self._become(TaskResultStatus.SUCCESSFUL)
        object.__setattr__(self._result, "_return_value", value)
        task_finished.send(sender=self._sender, task_result=self._result)
        return found

    def fails(self, error: BaseException) -> None:
        """The attempt raised; where the job is tried again its task is not finished."""
        if self._result.is_finished or isinstance(error, Snooze | Retry):
            return
        most, attempt = self._policy.max_deliveries, self._job.attempts + 1
        again = attempt < most and self._policy.retries(error) and not isinstance(error, Reject)
        if again:
            return
        path = error_name(type(error))
        self._result.errors.append(error_of({"type": path, "traceback": _traceback(error)}))
        self._become(TaskResultStatus.FAILED)
        task_finished.send(sender=self._sender, task_result=self._result)

    def _become(self, status: Any) -> None:
        from django.utils import timezone

        object.__setattr__(self._result, "finished_at", timezone.now())
        object.__setattr__(self._result, "status", status)


def _traceback(error: BaseException) -> str:
    from traceback import format_exception

    return "".join(format_exception(error))


def _earlier(backend: RqueueBackend, job: JobContext) -> list[dict[str, Any]]:
    """The errors of the attempts before this one: looked up where there are any."""
    if not job.attempts:
        return []
    queue = backend.queue(job.queue)
    return attempts_of(look_at_job(queue.redis, queue.keys, job.id).job)
