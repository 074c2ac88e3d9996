"""What threads and the event loop have in common: jobs given to them, and what becomes of those."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import Any, NoReturn

from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.tasks.context import JobContext
from rqueue_workers.exit_codes import Exit
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import NOTHING, Attempts
from rqueue_workers.worker.error_text import text
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.news import News
from rqueue_workers.worker.outage import is_closed
from rqueue_workers.worker.prefetch import PrefetchWindow
from rqueue_workers.worker.recycling import Recycling
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import Plan

log = logger("rqueue.worker")

WAVE_S = 0.2
"""Up to this many seconds a job, what waits may wait for a whole one: jobs that began together end
together, and until then no slot is free."""


def fail_hard(page: StatusPage) -> NoReturn:
    """End the process: a fault of our own in a thread that nobody watches. No job is to blame; but
    where the descriptors of the worker are closed, those that run are: one of them did it."""
    if is_closed(sys.exception()):
        end_broken("a job")
    page.blame_us()
    log.exception("the worker fails: a bug in rqueue, or data that it did not write")
    logging.shutdown()
    os._exit(Exit.INTERNAL)


def end_broken(who: str) -> NoReturn:
    """End the process, whose descriptors `who` has closed, from a thread that nobody watches: the
    main thread may wait for one that will never be readable again."""
    log.error("%s closed file descriptors of the worker: it ends", who)
    logging.shutdown()
    os._exit(Exit.BROKEN)


class Job:
    """A job in an executor: decoded, waiting or running."""

    __slots__ = (
        "acquired",
        "args",
        "cancelled",
        "context",
        "force",
        "head",
        "id",
        "kwargs",
        "opts",
        "plan",
        "since",
        "started",
        "subscription",
        "value",
    )

    def __init__(
        self,
        subscription: Subscription,
        id: bytes,
        value: bytes,
        acquired: int,
        head: bytes,
        plan: Plan,
        args: list[Any],
        kwargs: dict[str, Any],
        opts: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.subscription = subscription
        self.id = id
        self.value = value
        self.acquired = acquired
        self.head = head
        self.plan = plan
        self.args = args
        self.kwargs = kwargs
        self.opts = opts
        self.since = monotonic()
        self.started = 0.0
        self.cancelled = False
        self.force = ""
        self.context: JobContext | None = None


class Executor:
    """A number of slots that run jobs beside the main thread.

    `todo` is filled by the dispatcher and emptied by the slots, from the left, or by the dispatcher
    again, from the right, when it releases jobs. `running`: by slot.
    """

    def __init__(
        self,
        slots: int,
        first_row: int,
        attempts: Attempts,
        page: StatusPage,
        news: News,
        fixed: int = 0,
        forks: Forks | None = None,
        recycling: Recycling | None = None,
    ) -> None:
        self.slots = slots
        self.todo: deque[Job] = deque()
        self.running: dict[int, Job] = {}
        self.credit = PrefetchWindow(slots, fixed)
        self.stalled = 0.0
        """Seconds that unstarted jobs may wait for a slot, once some had to be released; 0.0 =
        none had."""
        self.stopping = False
        self._first_row = first_row
        self._attempts = attempts
        self._page = page
        self._news = news
        self._forks = forks or Forks(lambda: None)
        self._recycling = recycling or Recycling(0, 0)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Give the executor jobs; they start as slots are free. From any thread."""
        raise NotImplementedError

    def revoke(self, job: Job) -> None:
        """A running job was cancelled: its outcome will not count. Its subscription says what is to
        become of its code."""
        subscription = job.subscription
        subscription.cancelled.discard(job.id)
        job.cancelled = True
        if job.context is not None:
            job.context.cancelled = True
        job.force = subscription.stops.wanted.pop(job.id, job.force)
        if job.force == "kill":
            subscription.condemn(job.id)
        elif job.force:
            self._interrupt(job)
        if job.force and job not in list(self.running.values()):
            # it ended meanwhile, and its slot may have looked before
            subscription.stops.ended(job.id)

    def _interrupt(self, job: Job) -> None:
        """Interrupt the code of a running job that was cancelled."""
        raise NotImplementedError

    def _interrupted(self, job: Job) -> None:
        """The code of a job that was cancelled has been interrupted. From any thread."""
        job.subscription.stops.interrupted(job.id)
        self._news.tell()

    def close(self) -> None:
        """No more jobs will come."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits, begins or runs here. From any thread."""
        # in the order in which a job goes from one to the next
        return not (self.todo or self.beginning or self.running)

    @property
    def beginning(self) -> bool:
        """Whether a job may be on its way from `todo` to `running`."""
        raise NotImplementedError

    def strip(self) -> None:
        """In a child that a job forked: nothing else of this executor runs there."""
        self.todo.clear()

    @property
    def blocked(self) -> bool:
        """Whether unstarted jobs had to be released, and no slot was free since."""
        if self.stalled and len(self.running) < self.slots:
            self.stalled = 0.0
        return self.stalled > 0

    def release_unstarted(self) -> set[Subscription]:
        """Unstarted jobs are to go back to their queues; returns their subscriptions."""
        subscriptions = set()
        while self.todo:
            try:
                job = self.todo.pop()
            except IndexError:
                break
            job.subscription.back.append((job.id, job.value))
            subscriptions.add(job.subscription)
        return subscriptions

    def take_unstarted(self) -> list[Job]:
        """Take back what has not begun, in its order; to be submitted again."""
        jobs = []
        while True:
            try:
                jobs.append(self.todo.popleft())
            except IndexError:
                return jobs

    def stall(self, now: float) -> tuple[float, set[Subscription]]:
        """Give back what has waited too long for a slot. Returns seconds until the next look, 0.0 =
        none is needed, and the subscriptions whose jobs went back."""
        blocked = self.stalled if self.stalled and self.blocked else 0.0
        try:
            waited = now - self.todo[0].since
        except IndexError:
            return 0.0, set()
        mean = self.credit.mean
        wave = 1.5 * mean if mean <= WAVE_S else 0.0
        patience = max(0.05, 3 * mean / self.slots, wave, blocked)
        if waited < patience:
            return max(0.002, patience - waited), set()
        self.stalled = min(2.0, 2 * patience)
        return 0.0, self.release_unstarted()

    def _admitted(self, job: Job) -> bool:
        """Whether a job that was taken from `todo` may begin; else it is there again, and goes back
        to its queue, since the process is to make room for a fresh one."""
        if not self._recycling.active or self._recycling.admits():
            return True
        self.todo.appendleft(job)
        self._news.tell()
        return False

    def _begins(self, job: Job) -> bool:
        """As `Subscription.begins`, just before it does."""
        if job.subscription.begins(job.id, job.value, job.acquired):
            return True
        self._news.tell()
        return False

    # -- in the executor
    # -------------------------------------------------------------------------------

    def _begin(self, slot: int, job: Job, grace: float = 0.0) -> JobContext:
        """A slot takes a job on, which may be cancelled by now: then it is left out. grace: seconds
        that the supervisor waits after the hard limit."""
        plan, subscription = job.plan, job.subscription
        job.started = started = monotonic()
        allowed = plan.soft_time_limit or plan.time_limit
        context = JobContext(
            Delivery(job.id, job.value),
            plan.name,
            subscription.queue,
            job.opts,
            job.acquired,
            self._attempts.worker,
            started + allowed if allowed else None,
            partial(subscription.follow_ups.transaction, job.id),
            subscription.steps,
            subscription.reports,
        )
        context.stopping = self.stopping
        context.cancelled = job.cancelled
        job.context = context
        self.running[slot] = job
        if job.id in subscription.cancelled:  # just now: who cancelled it did not find it here
            self.revoke(job)
        if not job.cancelled:
            deadline = started + plan.time_limit + grace if plan.time_limit else 0.0
            row = self._first_row + slot
            self._page.start(row, subscription.index, job.id, started, deadline, job.acquired)
        return context

    def _end(self, slot: int, job: Job, result: Any, error: BaseException | None) -> None:
        """A job ended; its row goes to the subscription."""
        finished = monotonic()
        subscription, plan = job.subscription, job.plan
        self._page.finish(self._first_row + slot)
        if plan.early:
            subscription.doomed.discard((job.id, job.value))
            if error is not None:
                self._attempts.lost(job.id, plan, error)
        elif not job.cancelled:  # else it ended when it was cancelled: nothing is left to say
            row = (job.id, job.value, job.head, plan.name, job.acquired, job.started, finished)
            subscription.ended(self._attempts.ended(row, plan, result, error, subscription))
        # after the row is there: who looks for unfinished jobs finds it in one place or the other
        self.running.pop(slot, None)
        if job.force:
            subscription.stops.ended(job.id)
        self.credit.sample(1, finished - job.started)
        try:
            self._news.tell()
        except OSError as failure:
            self._accuse(slot, job, failure)

    def _accuse(self, slot: int, job: Job, failure: OSError) -> NoReturn:
        """The main thread cannot be woken. Where this job has closed what it is woken with, it is
        named on the page as if it still ran, so that it is charged."""
        if not is_closed(failure):
            raise failure
        row, index = self._first_row + slot, job.subscription.index
        self._page.start(row, index, job.id, job.started, 0.0, job.acquired)
        end_broken(f"job {text(job.id)} of {job.plan.name}")

    def _ack_early(self, job: Job, answered: Callable[[bool], object]) -> None:
        """A job that has its slot is acked before it begins; `answered` is called with whether it
        may."""
        row = (job.id, job.value, job.head, job.plan.name, job.acquired, job.started, job.started)
        job.subscription.ack_early(row, answered)
        self._news.tell()

    def _leave_out(self, slot: int, job: Job) -> None:
        """A job that may not begin leaves its slot."""
        self._page.finish(self._first_row + slot)
        self.running.pop(slot, None)
        if job.force:
            job.subscription.stops.ended(job.id)
        self._news.tell()

    def __repr__(self) -> str:
        ids = ", ".join(text(job.id) for job in list(self.running.values())[:5])
        return f"<{type(self).__name__} of {self.slots}: {len(self.running)} running {ids}>"
