"""The job that the main thread runs: what other threads see of it, and its context."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rqueue.model.job import Delivery
from rqueue.tasks.context import JobContext
from rqueue_workers.worker.subscription import Subscription

Now = tuple[Subscription, bytes, bytes, str, Mapping[str, Any], float, int, float | None]
"""subscription, id, value, task, options, started, acquired, deadline of the job that runs."""


class CurrentJob:
    """The job in the main thread. Its context is made when the job asks for it."""

    def __init__(self, worker: str) -> None:
        self.job: Now | None = None
        self.busy = False
        """The main thread runs jobs, one after the other: the stand-by thread has to watch."""
        self.stopping = False
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
            partial(subscription.follow_ups.transaction, id_),
        )  # fmt: skip
        context.stopping = self.stopping
        context.cancelled = id_ in subscription.cancelled
        self._made = (job, context)
        return context

    def revoke(self, subscription: Subscription, id: bytes) -> None:
        """Tell the job that runs, if it is this one, that it was cancelled."""
        job, made = self.job, self._made
        if job is not None and job[0] is subscription and job[1] == id and made is not None:
            made[1].cancelled = True

    def stop(self) -> None:
        """Tell the job that runs, and later ones, that the worker is about to stop."""
        self.stopping = True
        if self._made is not None:
            self._made[1].stopping = True
