"""From a job to Django's `TaskResult`, and what a job that ended well keeps for it.

A job is known until its record ends (the option `keep`). While it is there the job itself has its
arguments and the errors of its attempts; of one that has ended well only the result is left, so the
result holds all that a `TaskResult` tells. Both change in the step that changes the job: there is
no second record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils.module_loading import import_string

from rqueue.contrib.django.task_classes import (
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue_workers.status_page import worker_of

__all__ = ["ended_without_result", "kept", "moment", "result_id", "result_of", "split_id"]

PRIORITY, RUN_AFTER = "django.priority", "django.run_after"
"""Headers: what a job's level and due time have lost of the task's own."""

_WAITS = (
    *(JobState.READY, JobState.SCHEDULED, JobState.PARKED, JobState.BLOCKED),
    JobState.DEFERRED,
)
_MARK = "django.tasks"


def ended_without_result() -> None:
    """Stands for the task of a job of which nothing but its end is known: one that was cancelled,
    expired or purged, or whose task is no longer there."""


def result_id(queue: str, id: str) -> str:
    """The id of a `TaskResult`: it says in which queue the job is."""
    return f"{queue}:{id}"


def split_id(id: str) -> tuple[str, str]:
    """Queue and job of a result's id. Raises TaskResultDoesNotExist."""
    queue, colon, job = str(id).rpartition(":")
    if not (queue and colon and job):
        raise TaskResultDoesNotExist(id)
    return queue, job


def moment(ms: int | None) -> datetime | None:
    """A time by Redis's clock as Django has it."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def task_of(path: str, queue: str, alias: str, headers: Mapping[str, str]) -> Task:
    """The task that a job runs, with the options that it was enqueued with."""
    try:
        found = import_string(path)
    except ImportError:
        found = None
    if not isinstance(found, Task):
        return Task(func=ended_without_result, queue_name=queue, backend=alias)
    said: dict[str, Any] = {"queue_name": queue, "backend": alias}
    said["priority"] = int(headers.get(PRIORITY, 0))
    if when := headers.get(RUN_AFTER):
        said["run_after"] = datetime.fromisoformat(when)
    changed = {name: value for name, value in said.items() if getattr(found, name) != value}
    return found.using(**changed) if changed else found


def error_of(error: Mapping[str, Any]) -> TaskError:
    """An attempt's error: of its class the full path."""
    path = str(error.get("type") or "rqueue.errors.JobFailed")
    if path in ("Retry", "Reject"):
        path = f"rqueue.{path}"
    elif "." not in path:
        path = f"builtins.{path}"
    text = str(error.get("traceback") or error.get("message") or "")
    return TaskError(exception_class_path=path, traceback=text)


def kept(result: TaskResult, value: Any) -> dict[str, Any]:
    """What a job that has ended well keeps as its result."""
    task = result.task
    return {
        "return_value": value,
        _MARK: {
            "task": task.module_path,
            "args": result.args,
            "kwargs": result.kwargs,
            "headers": headers_of(task),
            "enqueued": _ms(result.enqueued_at),
            "started": _ms(result.started_at),
            "last": _ms(result.last_attempted_at),
            "errors": [[one.exception_class_path, one.traceback] for one in result.errors],
            "workers": result.worker_ids,
        },
    }


def headers_of(task: Task) -> dict[str, str]:
    """What a job carries of its task's options."""
    headers = {}
    if task.priority:
        headers[PRIORITY] = str(task.priority)
    if task.run_after is not None:
        headers[RUN_AFTER] = task.run_after.isoformat()
    return headers


def result_of(job: JobInfo, alias: str) -> TaskResult:
    """The result of a job, as it is now. Raises TaskResultDoesNotExist for a job that is none of a
    Django task."""
    id = result_id(job.queue, job.id)
    if job.state is JobState.DONE:
        return _done(job, id, alias)
    known = bool(job.task)
    if job.state is JobState.HELD:
        status = TaskResultStatus.RUNNING
    else:
        status = TaskResultStatus.READY if job.state in _WAITS else TaskResultStatus.FAILED
    errors = attempts_of(job)
    starts = [int(error["started"]) for error in errors if error.get("started")]
    workers = [str(error["worker"]) for error in errors if error.get("worker")]
    if job.state is JobState.HELD:
        workers.append(worker_of(job.holder))
    if not known:
        errors = [{"type": f"rqueue.errors.Job{str(job.state).title()}"}]
    headers = job.opts.get("headers", {})
    task = task_of(job.task, job.queue, alias, headers)
    return TaskResult(
        task=task,
        id=id,
        status=status,
        enqueued_at=moment(job.enqueued_ms),
        started_at=moment(starts[0] if starts else None),
        last_attempted_at=moment(starts[-1] if starts else None),
        finished_at=moment(job.ended_ms) if status == TaskResultStatus.FAILED else None,
        args=job.args,
        kwargs=job.kwargs,
        backend=alias,
        errors=[error_of(error) for error in errors],
        worker_ids=workers,
    )


def attempts_of(job: JobInfo) -> list[dict[str, Any]]:
    """The errors of a job's attempts, oldest first; why it is dead is the last one's."""
    charged = [error for error in job.errors if error.get("kind") != "suspected"]
    if job.state is JobState.DEAD and job.cause and job.cause not in charged:
        charged.append(job.cause)
    return charged


def _done(job: JobInfo, id: str, alias: str) -> TaskResult:
    facts = job.result.get(_MARK) if isinstance(job.result, Mapping) else None
    if not isinstance(facts, Mapping):
        raise TaskResultDoesNotExist(id)
    errors: Sequence[Sequence[str]] = facts["errors"]
    result = TaskResult(
        task=task_of(facts["task"], job.queue, alias, facts["headers"]),
        id=id,
        status=TaskResultStatus.SUCCESSFUL,
        enqueued_at=moment(facts["enqueued"]),
        started_at=moment(facts["started"]),
        last_attempted_at=moment(facts["last"]),
        finished_at=moment(job.ended_ms),
        args=facts["args"],
        kwargs=facts["kwargs"],
        backend=alias,
        errors=[TaskError(exception_class_path=path, traceback=text) for path, text in errors],
        worker_ids=list(facts["workers"]),
    )
    object.__setattr__(result, "_return_value", job.result["return_value"])
    return result


def _ms(when: datetime | None) -> int | None:
    return None if when is None else round(when.timestamp() * 1000)
