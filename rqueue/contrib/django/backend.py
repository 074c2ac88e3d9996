"""A backend of Django's tasks (`django.tasks`, or its backport): TASKS = {"default": {"BACKEND":
"rqueue.contrib.django.RqueueBackend", "QUEUES": [...], "OPTIONS": {...}}}.

| option | default | meaning |
| --- | --- | --- |
| `on_commit` | as RQUEUE says | whether enqueues wait for the commit of their transaction |
| `retry` | none | a RetryPolicy, or its fields: which failed attempts are tried again |
| `keep` | the queue's, 10 minutes | seconds that results are kept |
| `time_limit`, `soft_time_limit` | none | seconds that an attempt may take |

Without `retry` a task that raises has failed, as in Django's own backends. One whose worker dies,
or is stopped, runs again in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from math import ceil
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import transaction
from django.utils import timezone

from rqueue.client._sync.queue import Queue
from rqueue.client.default_queues import queue as default_queue
from rqueue.client.held_enqueues import HeldEnqueues, HeldHandle
from rqueue.contrib.django.commits import outbox_for, sends_on_commit, write_to_outbox
from rqueue.contrib.django.task_classes import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from rqueue.contrib.django.task_results import (
    headers_of,
    moment,
    result_id,
    result_of,
    split_id,
)
from rqueue.errors import ConfigError, InvalidName, UnknownJob
from rqueue.inspector.jobs import look_at_job
from rqueue.model.names import check_queue
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy, check_retry

__all__ = ["RqueueBackend"]

APP = "rqueue.contrib.django"
OPTIONS = ("on_commit", "retry", "keep", "time_limit", "soft_time_limit")
ATTEMPTS = 10
"""Of a retry policy that says nothing of it."""

FINAL = RetryPolicy(max_deliveries=ATTEMPTS, give_up_on=(BaseException,))
"""What raises has failed; what a crash has cut off runs again."""


def level_of(priority: int) -> int:
    """A task's priority, -100 to 100, as a job's, 0 to 9: 0 is 4; below it each 25 are one, above
    it each 20."""
    return 4 - ceil(-priority / 25) if priority < 0 else 4 + ceil(priority / 20)


class RqueueBackend(BaseTaskBackend):
    """Tasks are jobs of the process's queues, each named by the path of its task's function."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.problem: ConfigError | None = None
        """What is wrong with OPTIONS: `manage.py check` says it, and each enqueue raises it."""
        self._retry, self._calls, self.runs = FINAL, NO_OPTIONS, dict[str, Any]()
        try:
            self._read(self.options)
        except ConfigError as error:
            self.problem = error

    def _read(self, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in OPTIONS:
                near = get_close_matches(str(name), OPTIONS, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(OPTIONS)}"
                raise ConfigError("OPTIONS", f"there is no option '{name}': {hint}")
        retry = options.get("retry")
        if retry is not None:
            given = RetryPolicy.from_dict(retry) if isinstance(retry, Mapping) else retry
            policy = check_retry(given)
            self._retry = replace(policy, max_deliveries=policy.max_deliveries or ATTEMPTS)
        self.runs = {
            name: options[name]
            for name in ("keep", "time_limit", "soft_time_limit")
            if options.get(name) is not None
        }
        NO_OPTIONS.merged(**self.runs)
        self._calls = NO_OPTIONS.merged(
            on_commit=options.get("on_commit"), max_deliveries=self._retry.max_deliveries
        )

    def retry_of(self, task: Task) -> RetryPolicy:
        """Which failed attempts of a task are tried again, and how often."""
        return self._retry

    def queue(self, name: str) -> Queue:
        """The queue of this name. Raises ConfigError."""
        return default_queue(name)

    def validate_task(self, task: Task) -> None:
        """Raise InvalidTask for what cannot be enqueued here."""
        super().validate_task(task)
        try:
            check_queue(task.queue_name)
        except InvalidName as error:
            raise InvalidTask(str(error)) from None

    # -- enqueue -----------------------------------------------------------------------------------

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Enqueue a task, or hold it until the transaction around it is committed: `enqueued_at` is
        None until then. Raises InvalidTask, TypeError for arguments without a JSON form, and what
        the client raises."""
        self.validate_task(task)
        if self.problem is not None:
            raise self.problem
        result = TaskResult(
            task=task,
            id="",
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        options = self._options(task)
        request = JobRequest(task.module_path, result.args, result.kwargs, options)
        queue = self.queue(task.queue_name)
        if alias := outbox_for(options):
            job = write_to_outbox(request, queue, alias)
            object.__setattr__(result, "id", result_id(job.queue, job.id))
            signal = partial(task_enqueued.send, type(self), task_result=result)
            transaction.on_commit(signal, using=alias)
            return result
        sends = sends_on_commit(options)
        held = HeldEnqueues(queue) if sends is None else sends.into(queue)

        def sent(handle: HeldHandle[Any]) -> None:
            object.__setattr__(result, "id", result_id(handle.queue, handle.id))
            object.__setattr__(result, "enqueued_at", moment(handle.enqueued_ms))
            task_enqueued.send(type(self), task_result=result)

        handle = held.add(request, sent)
        object.__setattr__(result, "id", result_id(handle.queue, handle.id))
        if sends is None:
            held.send()
        return result

    def _options(self, task: Task) -> Options:
        after = task.run_after
        if after is not None and timezone.is_naive(after):
            after = timezone.make_aware(after)
        at_ms = None
        if after is not None and after > timezone.now():
            at_ms = ceil(after.timestamp() * 1000)
        headers = headers_of(task if after is None else replace(task, run_after=after))
        return self._calls.merged(priority=level_of(task.priority), at_ms=at_ms, headers=headers)

    # -- results -----------------------------------------------------------------------------------

    def get_result(self, result_id: str) -> TaskResult:
        """The result of a task, as it is now. Raises TaskResultDoesNotExist for an id that is
        unknown, or was known too long ago."""
        name, id = split_id(result_id)
        if self.queues and name not in self.queues:
            raise TaskResultDoesNotExist(result_id)
        try:
            queue = self.queue(name)
            job = look_at_job(queue.redis, queue.keys, id).job
        except (UnknownJob, InvalidName):
            raise TaskResultDoesNotExist(result_id) from None
        return result_of(job, self.alias)

    def check(self, **kwargs: Any) -> Iterable[CheckMessage]:
        """E002: the app is not installed. E003: OPTIONS are wrong."""
        if not apps.is_installed(APP):
            yield Error(f"TASKS[{self.alias!r}] needs {APP!r} in INSTALLED_APPS", id="rqueue.E002")
        if self.problem is not None:
            yield Error(f"TASKS[{self.alias!r}]: {self.problem}", id="rqueue.E003")
