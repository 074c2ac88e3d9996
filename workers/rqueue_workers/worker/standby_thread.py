"""The stand-by thread: a thread that works at the dispatcher while the main thread is in a long
job.

It settles what ended before that job, releases what waits behind it, hears that jobs were
cancelled, and ends the process when the job outlasts the drain. It sleeps for as long as a job is
not long, and while the worker idles it is parked and costs nothing.
"""

from __future__ import annotations

import threading
from time import monotonic

from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.current_job import CurrentJob, Now
from rqueue_workers.worker.departure import Departure
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.executors.base import fail_hard
from rqueue_workers.worker.news import News
from rqueue_workers.worker.prefetch import IN_HAND_S

TICK_S = 0.005
SLOW_TICK_S = 0.05
LISTEN_AFTER_S = 0.02
"""Seconds that a job runs before this thread listens in the place of the main thread."""

IDLE_TICKS = 20
"""Looks at an idle main thread before it is parked."""


class StandbyThread(threading.Thread):
    """departure: ends the process, when it must, under a long job."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        slot: CurrentJob,
        page: StatusPage,
        departure: Departure,
        news: News,
    ) -> None:
        super().__init__(name="rqueue-standby", daemon=True)
        self._dispatcher = dispatcher
        self._slot = slot
        self._page = page
        self._departure = departure
        self._news = news
        self._closed = False
        self._watched: Now | None = None
        self._looks = 0

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._news.event.set()

    def run(self) -> None:
        """Look, sleep, look."""
        try:
            self._watch()
        except BaseException:
            fail_hard(self._page)

    def _watch(self) -> None:
        idle = 0
        while not self._closed:
            job = self._slot.job
            if job is not None:
                idle = 0
                elapsed = monotonic() - job[5]
                patience = job[0].prefetch.patience
                if any(subscription.crowded for subscription in self._dispatcher.subscriptions):
                    patience = min(patience, IN_HAND_S)
                if elapsed < patience:
                    pause = min(patience - elapsed, self._listen(job, elapsed))
                else:
                    pause = self._attend(job)
                if (limit := self._slot.limit) is not None:
                    left = limit.at - monotonic()
                    if left <= 0:
                        self._slot.strike()
                    pause = min(pause, max(TICK_S, left))
                self._sleep(pause)
                continue
            idle += 1
            if idle < IDLE_TICKS or self._slot.busy:
                self._sleep(TICK_S)
                continue
            idle = 0
            self._news.parked = True
            if not self._slot.busy:
                self._sleep(None)
            self._news.parked = False

    def _listen(self, job: Now, elapsed: float) -> float:
        """A job runs no longer than others do, which is long: jobs that wait behind it are still
        here, and may be cancelled. Returns seconds until the next look."""
        if elapsed < LISTEN_AFTER_S:
            return LISTEN_AFTER_S - elapsed
        self._dispatcher.guarded(self._dispatcher.routes[0], self._dispatcher.poll, job=job)
        return SLOW_TICK_S

    def _sleep(self, seconds: float | None) -> None:
        if self._news.event.wait(seconds):
            self._news.event.clear()

    def _attend(self, job: Now) -> float:
        """A job runs long. Returns seconds until the next look."""
        dispatcher = self._dispatcher
        if job is not self._watched:
            self._watched = job
            self._looks = 0
        self._looks += 1
        self._news.rung = False
        self._slot.strike()
        dispatcher.look_at_page()
        for subscription in dispatcher.subscriptions:
            route = subscription.route
            if route.waiting or subscription.damage.waiting:
                continue
            dispatcher.guarded(route, dispatcher.clear, subscription, job=job)
            if self._slot.job is not job:
                return TICK_S
            if (
                subscription.pending
                or subscription.doubtful
                or subscription.flight is not None
                or subscription.engaged
                or dispatcher.wants(subscription, monotonic(), blocked=True)
            ):
                dispatcher.step(subscription, job)
            elif route.apart:
                dispatcher.send_on(subscription, job)
        dispatcher.guarded(dispatcher.routes[0], dispatcher.poll, job=job)
        if dispatcher.isolation.watching:
            dispatcher.isolate(job)
        dispatcher.rest(monotonic())
        self._departure.overdue(job)
        if (
            any(
                subscription.todo or subscription.pending
                for subscription in dispatcher.subscriptions
            )
            or self._looks < 20
        ):
            return TICK_S
        return SLOW_TICK_S
