"""The job that the main thread runs: what other threads see of it, and its context."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import Any

from rqueue.errors import SoftTimeLimit
from rqueue.model.job import Delivery
from rqueue.tasks.context import JobContext
from rqueue_workers.worker.subscription import Subscription

INTERRUPT = signal.SIGURG
"""Ends what the main thread waits in. By itself it does nothing to a process."""

Now = tuple[Subscription, bytes, bytes, str, Mapping[str, Any], float, int, float | None]
"""subscription, id, value, task, options, started, acquired, deadline of the job that runs."""


class SoftLimit:
    """The soft limit of the job in the main thread: when it strikes, and strikes again."""

    AGAIN_S = 1.0
    """Seconds that a job has at least to tidy up."""

    def __init__(self, task: str, seconds: float, started: float) -> None:
        self.at = started + seconds
        self._task = task
        self._seconds = seconds

    def struck(self, now: float) -> SoftTimeLimit | None:
        """What is to be raised now; None where it is not time, or the job is still in the `except`
        or `finally` of the last one. In a signal handler, which sees what the code handles."""
        if now < self.at:
            return None
        self.at = now + max(self._seconds, self.AGAIN_S)
        return None if handles_limit(sys.exception()) else SoftTimeLimit(self._task, self._seconds)


def handles_limit(error: BaseException | None) -> bool:
    """Whether code that handles this error handles a soft limit."""
    while error is not None and not isinstance(error, SoftTimeLimit):
        error = error.__context__
    return error is not None


class CurrentJob:
    """The job in the main thread. Its context is made when the job asks for it."""

    def __init__(self, worker: str) -> None:
        self.job: Now | None = None
        self.busy = False
        """The main thread runs jobs, one after the other: the stand-by thread has to watch."""
        self.stopping = False
        self.limit: SoftLimit | None = None
        """Of the job, while its function runs."""
        self.main: int | None = None
        """The thread that hears of `INTERRUPT`, where one does."""
        self._worker = worker
        self._made: tuple[Now, JobContext] | None = None

    def context(self) -> JobContext | None:
        """The context of the job that runs."""
        job = self.job
        if job is None:
            return None
        made = self._made
        if made is not None and made[0] is job:
            return made[1]
        subscription, id_, value, task, opts, _, acquired, deadline = job
        context = JobContext(
            Delivery(id_, value), task, subscription.queue, opts, acquired, self._worker, deadline,
            partial(subscription.follow_ups.transaction, id_), subscription.steps,
            subscription.reports,
        )  # fmt: skip
        context.stopping = self.stopping
        context.cancelled = id_ in subscription.cancelled
        self._made = (job, context)
        return context

    def revoke(self, subscription: Subscription, id: bytes) -> None:
        """Tell the job that runs, if it is this one, that it was cancelled."""
        self.strike()
        job, made = self.job, self._made
        if job is not None and job[0] is subscription and job[1] == id and made is not None:
            made[1].cancelled = True

    def strike(self) -> None:
        """Knock at the main thread where its job was cancelled and is to be interrupted, or its
        soft limit is over: whether it is still that job is looked at there."""
        job, limit = self.job, self.limit
        if job is None or self.main is None:
            return
        cancelled = job[0].stops.wanted.get(job[1]) == "stop"
        if cancelled or (limit is not None and limit.at <= monotonic()):
            signal.pthread_kill(self.main, INTERRUPT)

    def stop(self) -> None:
        """Tell the job that runs, and later ones, that the worker is about to stop."""
        self.stopping = True
        if self._made is not None:
            self._made[1].stopping = True
