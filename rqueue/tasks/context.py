"""What a running job may know of itself: `current_job()`."""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from rqueue.errors import LifecycleError
from rqueue.model.job import Delivery
from rqueue.model.progress import checked
from rqueue.model.tick import Tick
from rqueue.tasks import steps
from rqueue.tasks.job_transaction import JobTransaction
from rqueue.tasks.reporting import AttemptReport, Reports
from rqueue.tasks.steps import StepKeeper

__all__ = ["JobContext", "current", "current_job"]

P = ParamSpec("P")
T = TypeVar("T")

_NOTHING: Mapping[str, Any] = {}


class JobContext:
    """The job that is running, as `current_job()` shows it.

    Made by the worker for every job, so it copies nothing and looks up only what is asked for.
    Times are ms since the epoch by Redis's clock, except `deadline`.
    """

    __slots__ = (
        "_delivery",
        "_follow",
        "_keeper",
        "_opts",
        "_report",
        "_reports",
        "_steps",
        "acquired_ms",
        "cancelled",
        "deadline",
        "queue",
        "stopping",
        "task",
        "worker",
    )

    def __init__(
        self,
        delivery: Delivery,
        task: str,
        queue: str,
        opts: Mapping[str, Any] = _NOTHING,
        acquired_ms: int = 0,
        worker: str = "",
        deadline: float | None = None,
        follow: Callable[[], JobTransaction] | None = None,
        keeper: StepKeeper | None = None,
        reports: Reports | None = None,
    ) -> None:
        self._keeper = keeper
        self._reports = reports
        self._report: AttemptReport | None = None
        self._steps: steps.JobSteps | None = None
        self._follow = follow
        self._delivery = delivery
        self._opts = opts
        self.task = task
        """The task's name."""
        self.queue = queue
        """The queue that the job came from."""
        self.acquired_ms = acquired_ms
        """When the worker got the job."""
        self.worker = worker
        """The worker's name."""
        self.deadline = deadline
        """When the limit (soft, else hard) ends, by `time.monotonic()`; None without one."""
        self.cancelled = False
        """Whether the job was cancelled meanwhile: its outcome will not count."""
        self.stopping = False
        """Whether the worker is about to stop: a long job may save its work and return."""

    @property
    def id(self) -> str:
        """The job's id: the same on every attempt, so a good key for doing something only once."""
        return self._delivery.id

    @property
    def delivery(self) -> int:
        """The how-manieth time that the job is delivered, from 1."""
        return self._delivery.deliveries + 1

    @property
    def attempts(self) -> int:
        """How many attempts failed or crashed before this one."""
        return self._delivery.attempts

    @property
    def crashes(self) -> int:
        """How many of these cost a worker its process."""
        return self._delivery.crashes

    @property
    def enqueued_ms(self) -> int:
        """When the queue accepted the job."""
        return self._delivery.enqueued_ms

    @property
    def tick(self) -> Tick | None:
        """Of which schedule the job is, and for when; None where it is none of a schedule
        (A-41)."""
        return Tick.of(self._delivery.id, self._delivery.value)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the job was enqueued with."""
        headers: Mapping[str, str] = self._opts.get("headers", _NOTHING)
        return headers

    @property
    def labels(self) -> Mapping[str, str | int | bool]:
        """The labels that the job was enqueued with."""
        labels: Mapping[str, str | int | bool] = self._opts.get("labels", _NOTHING)
        return labels

    def transaction(self) -> JobTransaction:
        """What follows this job: `with job.transaction() as tx: tx.enqueue(...)`. It is enqueued in
        the job's queue by the step that acks the job, or not at all: where the job fails or its
        worker dies, nothing is (Q-73)."""
        if self._follow is None:
            raise LifecycleError("no worker runs this job: nothing can follow it")
        return self._follow()

    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function once in the job's life: what it returns is kept with the job before the
        job goes on, and returned, in its JSON form, by every later attempt, which does not call it
        again. Where the process dies between the two, it is called again. Raises what the function
        raises, NotEncodable, ConfigError (a name that is there twice, too much to keep),
        `Cancelled` where the job is not held here any more, and the server errors."""
        return steps.call(self._own_steps(), name, function, *args, **kwargs)

    async def astep(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `step`, in an `async def` task, for an `async def` function."""
        return await steps.acall(self._own_steps(), name, function, *args, **kwargs)

    def iterate(
        self, source: Callable[[Any], Iterable[tuple[Any, T]]], name: str = "rows"
    ) -> Iterator[T]:
        """The rows of a long loop. `source` is called with the position behind which to begin, None
        at first, and yields pairs: a position (JSON), a row. Where a row's turn is over its
        position is kept with the job: once a second at the most, at the end, and where the worker
        is about to stop: then the job goes back to its place, uncounted, and goes on from there in
        another one.
        What was done since the last time is done again after a kill. Raises as `step`."""
        return self._own_steps().iterate(name, source)

    def aiterate(
        self, source: Callable[[Any], AsyncIterable[tuple[Any, T]]], name: str = "rows"
    ) -> AsyncIterator[T]:
        """As `iterate`, in an `async def` task: `async for`."""
        return self._own_steps().aiterate(name, source)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Say how far the job is: so much of a total, and what it is about. Costs about a
        microsecond, waits for nothing, and may be said in a loop, in any thread and on the event
        loop: the last word is sent, four times a second at the most. Watchers see it
        (`handle.watch`), and `rqueue show` shows it.

        Numbers are finite, at least 0 and at most 2**53; `done` may exceed `total`; a text is cut
        after 200 characters. Nothing comes of it where no worker runs the job, and when the attempt
        is over. Raises ConfigError, and LifecycleError in a process that the job forked.
        """
        report = checked(done, total, text)
        if own := self._own_report():
            own.progress(report)

    def log(self, message: str, *args: object, level: int = logging.INFO) -> None:
        """A line that is kept with the job, `message % args`: watchers see it, `rqueue log` and
        `Inspector.log` have the last 1000 lines or 100 KB of a job. Sent as progress is, and before
        the job ends in any case. A line is cut after 2000 characters; of more than 1000 that are
        not sent yet the oldest are dropped.

        Nothing comes of it where no worker runs the job, and when the attempt is over. Raises
        LifecycleError in a process that the job forked.
        """
        text = message % args if args else str(message)
        if own := self._own_report():
            own.log(level, text)

    def _own_report(self) -> AttemptReport | None:
        if self._report is None and self._reports is not None:
            self._report = self._reports.of(self.id, self.delivery)
        return self._report

    def step_key(self, name: str) -> str:
        """A text that is the same for this step in every attempt, and no other: an idempotency key
        for what the step calls."""
        return f"{self.id}:{name}"

    def _own_steps(self) -> steps.JobSteps:
        if self._keeper is None:
            raise LifecycleError("no worker runs this job: nothing can be kept with it")
        if self._steps is None:
            delivery = self._delivery
            self._steps = steps.JobSteps(
                self._keeper,
                self.task,
                delivery.id,
                delivery.deliveries,
                delivery.value,
                lambda: self.stopping,
            )
        return self._steps

    def __repr__(self) -> str:
        return f"<JobContext {self.id!r} of task {self.task!r}>"


current: ContextVar[JobContext | Callable[[], JobContext | None] | None] = ContextVar(
    "rqueue_current_job", default=None
)
"""Set by the worker: the context of the job that runs, or what makes it when it is asked for."""


def current_job() -> JobContext | None:
    """The job that runs here; None outside one, since a task may also be called as a function."""
    found = current.get()
    if found is None or isinstance(found, JobContext):
        return found
    return found()
