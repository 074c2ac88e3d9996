"""How a worker leaves: what has not begun goes back, what runs may end until the deadline."""

from __future__ import annotations

import os
from time import monotonic

from rqueue.errors import QueueDamaged, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.text.numbers import many
from rqueue_workers.exit_codes import Exit
from rqueue_workers.status_page import CONTINUE, DRAINING, LEAVING, STOP, WAITING, StatusPage
from rqueue_workers.worker.current_job import CurrentJob, Now
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.news import News
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.shutdown import Stop
from rqueue_workers.worker.under_way import ANSWER_S

log = logger("rqueue.worker")


class Departure:
    """Used by the main thread at its end, and by the stand-by thread while it is in a long job."""

    def __init__(
        self, dispatcher: Dispatcher, slot: CurrentJob, page: StatusPage, stop: Stop, news: News
    ) -> None:
        self.unfinished = 0
        """Jobs that still ran in the end."""
        self._dispatcher = dispatcher
        self._slot = slot
        self._page = page
        self._stop = stop
        self._news = news
        self._patient = False

    def leave(self) -> int:
        """Give back what has not begun, let run what has until the deadline, leave the queues."""
        dispatcher, stop = self._dispatcher, self._stop
        if stop.level:
            self._page.set_phase(DRAINING)
        else:
            self._page.set_phase(LEAVING)
            stop.retire()
        self._announce()
        while True:
            self._news.rung = False
            for subscription in self._dispatcher.subscriptions:
                owes = subscription.term and (subscription.pending or subscription.flight)
                if (
                    (owes or subscription.engaged)
                    and not subscription.route.waiting
                    and not subscription.damage.waiting
                ):
                    dispatcher.step(subscription)
                elif subscription.sends_on:
                    dispatcher.send_on(subscription)
            # before the look for what is to be said: what ends meanwhile is said too
            idle = dispatcher.idle
            pending = any(
                (one.pending and not one.damage.since) or one.engaged or one.sends_on
                for one in self._dispatcher.subscriptions
            )
            if idle:
                if not pending:
                    break
                stop.hurry(dispatcher.spec.settings.lease_ms / 1000)  # what is left is to be said
            left = self._time_left()
            if left <= 0 or stop.level == STOP:
                break
            if dispatcher.waiting:
                left = min(left, dispatcher.waiting)
            rest = dispatcher.rest(monotonic())
            stop.pause(min(left, 0.2 if rest is None else max(0.005, min(rest, 0.2))))
            stop.look()
            self._release_unstarted()  # jobs that were delivered while it left
        return self._part()

    def _time_left(self) -> float:
        """Seconds until what is not done is left as it is: until the deadline of the drain. Where
        nothing runs any more and only Redis is missing, as long as the lease may hold: what ended
        would have to run again."""
        now = monotonic()
        left = self._stop.deadline - now
        gone = max((route.outage.since for route in self._dispatcher.away), default=0.0)
        unreported = self._unreported()
        if not gone or not unreported or not self._dispatcher.idle:
            return left
        left = max(left, gone + self._dispatcher.spec.settings.lease_ms / 1000 - now)
        if not self._patient:
            self._patient = True
            self._page.set_phase(WAITING)
            log.warning(
                "%s to be reported, and Redis is gone: leaving waits for it, at most %.1f s",
                many(unreported, "outcome"),
                max(0.0, left),
            )
        return left

    def _unreported(self) -> int:
        return sum(len(subscription.unreported) for subscription in self._dispatcher.subscriptions)

    def _announce(self, job: Now | None = None) -> None:
        """Nothing new is begun; running jobs learn of it."""
        self._dispatcher.closing = True
        self._slot.stop()
        for executor in self._dispatcher.executors.values():
            executor.stopping = True
            for running in list(executor.running.values()):
                if running.context is not None:
                    running.context.stopping = True
        self._release_unstarted(job)
        for subscription in self._dispatcher.subscriptions:
            if subscription.term and subscription.state != "not_interested":
                self._dispatcher.step(subscription, job)

    def _release_unstarted(self, job: Now | None = None) -> None:
        """Everything unstarted goes back."""
        # asked to leave before it had joined, it has nothing to listen to
        for route in self._dispatcher.routes:
            if not route.away and any(one.term for one in self._dispatcher.on(route)):
                self._dispatcher.guarded(route, self._dispatcher.landed, route, job=job)
                self._dispatcher.guarded(route, self._dispatcher.poll, job=job)
        with self._dispatcher.lock:
            if job is not None and self._slot.job is not job:
                return
            self._dispatcher.release_unstarted()
        for subscription in self._dispatcher.subscriptions:
            if (
                subscription.term
                and subscription.pending
                and not subscription.route.waiting
                and not subscription.damage.waiting
            ):
                self._dispatcher.step(subscription, job)

    def _part(self) -> int:
        """Leave the queues: what still runs goes back uncounted, its outcome changes nothing."""
        unfinished = self._dispatcher.running + (1 if self._slot.job is not None else 0)
        lost = self._unreported()
        # first where nobody has to be waited for
        routes = sorted(self._dispatcher.routes, key=lambda route: route.away)
        while routes:
            for route in routes:
                self._leave_in_order(route)
            routes = [route for route in routes if route.under_way is not None]
            if routes:
                self._dispatcher.await_replies(ANSWER_S)
        if unfinished:
            log.warning("released %s that still ran", many(unfinished, "job"))
        if lost:
            log.warning(
                "%s could not be reported: %s; where the lease ends first, %s again",
                many(lost, "outcome"),
                "Redis is gone" if self._dispatcher.away else "their queue is damaged",
                "that job runs" if lost == 1 else "those jobs run",
            )
        self.unfinished = unfinished
        return Exit.UNFINISHED if unfinished or lost else Exit.OK

    def _leave_in_order(self, route: Route) -> None:
        try:
            self._leave(route)
        except RegistrationLost as error:
            log.warning("%s", error)
        except ServerError as error:
            log.warning("could not leave in order, the lease will end: %s", error)

    def _leave(self, route: Route) -> None:
        """Leave the queues of a route; where others have routes of their own, this may be under way
        then, and is called again until it is not. Raises the server errors and RegistrationLost."""
        try:
            if not self._dispatcher.landed(route):
                return
        except QueueDamaged as error:
            self._dispatcher.leave_alone(error)
        for_good = self._page.asked != CONTINUE
        for subscription in self._dispatcher.on(route):
            try:
                if not route.apart:
                    subscription.unregister(for_good)
                elif subscription.term:
                    route.begin(subscription.leaving(for_good), subscription)
            except QueueDamaged as error:
                self._dispatcher.leave_alone(error)

    def overdue(self, job: Now) -> None:
        """By the stand-by thread, while the main thread is in a long job: drain, and at the
        deadline end the process under it."""
        self._stop.look()
        if not self._stop.level:
            return
        if not self._dispatcher.closing:
            self._page.set_phase(DRAINING)
            self._announce(job)
        if self._stop.level == STOP or monotonic() >= self._stop.deadline:
            with self._dispatcher.lock:
                if self._slot.job is not job:
                    return
                code = self._part()
            os._exit(code)
