"""Which jobs an assertion means, and what it says where they are not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rqueue.errors import ConfigError
from rqueue.model.envelope import encode_result
from rqueue.model.job_info import JobInfo
from rqueue.model.times import parse_duration, parse_when
from rqueue.tasks.bound_task import BoundTask

__all__ = ["Expected", "When", "line_of"]

When = datetime | timedelta | float | str

AT_MS, IN_MS = 1000, 1000
"""How far from the time that is said a job may be due: a program looks at the time itself, a
moment before it enqueues."""

SHOWN = 20
"""Jobs that a failed assertion lists."""


def as_sent(value: Any) -> Any:
    """An argument as the task will get it: a tuple is a list by then, a datetime text."""
    return json.loads(encode_result(value))


class Expected:
    """The jobs of a task that fit what else is said; None: whatever it is. now_ms: by the harness's
    clock, for `in_`. Raises ConfigError."""

    def __init__(
        self,
        task: BoundTask[..., Any] | str,
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        queue: str | None,
        at: When | None,
        in_: When | None,
        now_ms: int,
    ) -> None:
        self.task = task if isinstance(task, str) else task.name
        self.queue = queue
        self._places = _names(task)
        self._args = None if args is None else [as_sent(one) for one in args]
        self._kwargs = None if kwargs is None else {k: as_sent(v) for k, v in kwargs.items()}
        if at is not None and in_ is not None:
            raise ConfigError("in_", "say at or in_, not both")
        self._due_ms, self._slack_ms = None, 0
        if at is not None:
            when = parse_when(at, "at")
            self._due_ms = when.at_ms if when.at_ms is not None else now_ms + (when.delay_ms or 0)
            self._slack_ms = AT_MS
        elif in_ is not None:
            delay = in_ if isinstance(in_, str | int | float | timedelta) else None
            if delay is None:
                raise ConfigError("in_", "is a duration: seconds, '2h' or a timedelta")
            self._due_ms = now_ms + round(parse_duration(delay, "in_") * 1000)
            self._slack_ms = IN_MS
        self._tests: list[Callable[[JobInfo], bool]] = [lambda job: job.task == self.task]
        if queue is not None:
            self._tests.append(lambda job: job.queue == queue)
        if self._args is not None or self._kwargs is not None:
            self._tests.append(self._called_so)
        if self._due_ms is not None:
            self._tests.append(self._due_then)

    def fits(self, job: JobInfo) -> bool:
        """Whether it is one of them."""
        return all(test(job) for test in self._tests)

    def _called_so(self, job: JobInfo) -> bool:
        args, kwargs = self._args, self._kwargs
        if (args is None or job.args == args) and (kwargs is None or job.kwargs == kwargs):
            return True
        # by place or by name: the same call
        called = _by_name(self._places, job.args, job.kwargs)
        if called is None:
            return False
        if args is None:
            return all(one in called.items() for one in (kwargs or {}).items())
        return called == _by_name(self._places, args, kwargs or {})

    def _due_then(self, job: JobInfo) -> bool:
        assert self._due_ms is not None
        return abs((job.due_ms or job.enqueued_ms) - self._due_ms) <= self._slack_ms

    def words(self) -> str:
        """What was expected, for the message."""
        said = f"{self.task}({_call(self._args, self._kwargs)})"
        if self.queue is not None:
            said += f" in queue '{self.queue}'"
        if self._due_ms is not None:
            said += f" due {_time(self._due_ms)}"
        return said


def _names(task: BoundTask[..., Any] | str) -> Sequence[str]:
    return () if isinstance(task, str) else tuple(task.check.positional)


def _by_name(
    places: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any] | None:
    if len(args) > len(places):
        return None
    return {**dict(zip(places, args, strict=False)), **kwargs}


def _call(args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> str:
    if args is None and kwargs is None:
        return "..."
    parts = ["..."] if args is None else [repr(one) for one in args]
    parts += [f"{name}={value!r}" for name, value in (kwargs or {}).items()]
    return ", ".join(parts)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(timespec="seconds")


def line_of(job: JobInfo) -> str:
    """A job, for messages."""
    due = f", due {_time(job.due_ms)}" if job.due_ms and job.state == "scheduled" else ""
    return f"{job.task}({_call(job.args, job.kwargs)}) in queue '{job.queue}', {job.state}{due}"


def listed(jobs: Sequence[JobInfo]) -> str:
    """Jobs, for messages: what there is instead."""
    if not jobs:
        return "nothing is enqueued"
    lines = [f"  {line_of(job)}" for job in jobs[:SHOWN]]
    if len(jobs) > SHOWN:
        lines.append(f"  and {len(jobs) - SHOWN} more")
    return "\n".join(["enqueued are:", *lines])
