"""The dispatcher: settles what ended, pulls what there is room for, puts jobs into their order.

The main thread works at it between jobs; while a job of its own runs long, the stand-by thread
does. One lock is taken for each batch, none for a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from rqueue.errors import QueueDamaged, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import came_back
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob, Now
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.hearing import Hearing
from rqueue_workers.worker.outcome import Ack
from rqueue_workers.worker.route import BRIEF_S, Route
from rqueue_workers.worker.settle_calls import CHUNK
from rqueue_workers.worker.subscription import Subscription, Unstarted

log = logger("rqueue.worker")


class Dispatcher(Hearing):
    """All that the main thread and the stand-by thread share."""

    def __init__(
        self,
        spec: WorkerSpec,
        subscriptions: Sequence[Subscription],
        executors: dict[int, Executor],
        attempts: Attempts,
        routes: Sequence[Route],
        slot: CurrentJob,
        page: StatusPage,
    ) -> None:
        super().__init__(spec, subscriptions, executors, attempts, routes, slot, page)
        self._doubts = page.doubts

    # -- one step ----------------------------------------------------------------------------------

    def guarded(
        self,
        route: Route,
        action: Callable[..., object],
        *arguments: object,
        job: Now | None = None,
    ) -> bool:
        """Do something on a route, under the lock; an outage is noted, a lost registration made
        good. Whether Redis could be used.

        job: said by the stand-by thread, the one that runs in the main thread. If that has ended,
        nothing is done: the main thread takes the lock once after each batch, before it waits for
        wake-ups, so the two never use a connection together.
        """
        with self.lock:
            if job is not None and self.slot.job is not job:
                return False
            try:
                try:
                    action(*arguments)
                except RegistrationLost as error:
                    log.warning("%s", error)
                    self.rejoin(error)
            except QueueDamaged as error:
                self.leave_alone(error)
            except ServerError as error:
                self.gone(route, error)
                return False
            return True

    def look_out(self) -> None:
        """See which routes that are away answer again: before they are tried."""
        with self.lock:
            for route in self.away:
                route.look()

    def look_at_page(self) -> None:
        """The supervisor may have reason to doubt that anything is heard of a queue: its Redis was
        silent for long, or does not know this worker."""
        if (doubts := self._page.doubts) == self._doubts:
            return
        before, self._doubts = self._doubts, doubts
        with self.lock:
            for subscription in self.subscriptions:
                if doubts[subscription.index] == before[subscription.index]:
                    continue
                subscription.doubtful = True
                subscription.route.listener.suspect()
                if subscription.route not in self._flying:  # else that call will tell
                    subscription.route.connection.suspect()

    def join(self) -> bool:
        """Register in all queues that can be reached; whether there are any."""
        self.look_out()
        for route in self.routes:
            if not route.waiting:
                self.guarded(route, self.enter, route)
        return len(self.away) < len(self.routes)

    def step(self, subscription: Subscription, job: Now | None = None) -> None:
        """Settle what ended in a subscription and pull. job: see `guarded`; the main thread is in
        it."""
        self.guarded(subscription.route, self._step, subscription, job is not None, job=job)

    def _step(self, subscription: Subscription, blocked: bool) -> None:
        route = subscription.route
        if self._flying and not self._may_go_on(subscription, blocked):
            return
        if subscription.damage.since:
            self._return_to(subscription)
        elif not subscription.term:
            self.enter(route)
            self._ask_anew(subscription)
            if not subscription.term:
                return  # it is damaged
        if subscription.doubtful:
            self._recover(subscription, blocked)
        elif subscription.passing and self._passed_on(subscription):
            pass  # the others first
        elif route.apart and not self._takes_long(subscription):
            self._send(subscription, blocked)
            if not route.connection.answered(BRIEF_S):
                return
            self.land(route)
        else:
            self._take_in(
                subscription, subscription.settle(self.window(subscription, blocked)), blocked
            )
        if route.outage.since:
            self.back(route)
        if subscription.damage.since:
            subscription.damage.over(subscription.queue)
        self.poll()  # last: a client may wait for an outcome that was settled

    def _may_go_on(self, subscription: Subscription, blocked: bool) -> bool:
        """Read the reply that is under way on a subscription's route. Whether something may be said
        to its queue then: not before that reply is there, nor where it leaves nothing to say."""
        engaged = subscription.engaged
        if not self.landed(subscription.route):
            return False
        return not engaged or self.wants(subscription, monotonic(), blocked)

    def _takes_long(self, subscription: Subscription) -> bool:
        """Whether what is to be said takes more than one call, or more than its reply has to be
        known before anything else is done."""
        return bool(
            subscription.doubtful
            or subscription.passing
            or subscription.settle_first
            or subscription.follow_ups.jobs
            or subscription.stops.news
            or subscription.pending > CHUNK
            or subscription.damage.since
            or subscription.route.outage.since
            or self.closing
        )

    def _send(self, subscription: Subscription, blocked: bool) -> None:
        subscription.send(self.window(subscription, blocked))
        self._flying[subscription.route] = subscription
        subscription.route.begun()

    def _return_to(self, subscription: Subscription) -> None:
        """Ask a queue again that was damaged."""
        if not subscription.term:
            self.enter_late(subscription)
        elif self._label(subscription) not in self._by_name:
            self.listen(subscription)
        else:
            return
        self._ask_anew(subscription)

    def ack_early(self, subscription: Subscription, row: Ack) -> bool:
        """Ack the main thread's next job before it begins (Q-24); False where it must not begin."""
        answers: list[bool] = []
        subscription.ack_early(row, answers.append)
        self.guarded(subscription.route, self._report, subscription)
        with self.lock:
            subscription.withdraw(row)
        return answers == [True]

    def _report(self, subscription: Subscription) -> None:
        self.land(subscription.route)
        subscription.settle(None)

    def post(self, subscription: Subscription) -> None:
        """`step` for a subscription that has more to run: its jobs run meanwhile, and the reply is
        read at the dispatcher's next step."""
        self.guarded(subscription.route, self._post, subscription)

    def _post(self, subscription: Subscription) -> None:
        if not self.landed(subscription.route):
            return
        if self._takes_long(subscription):
            self._step(subscription, False)
            return
        self._send(subscription, False)
        self.poll()

    def clear(self, subscription: Subscription) -> None:
        """The main thread is in a long job: its other jobs are to go back. Raises the server
        errors."""
        # what is under way comes behind what is here: apart from each other they would overtake
        if not self.landed(subscription.route):
            return
        if subscription.release_unstarted():
            # other executors may still have room, but not for these: look again later
            subscription.hold(monotonic())

    def landed(self, route: Route) -> bool:
        """Read the reply that is under way there, if one is. False where it is not there yet and
        others need not wait for it. Raises the server errors."""
        if route.apart and route in self._flying:
            if not route.answered(monotonic()):
                return False
            if not route.connection.answered():
                raise route.connection.overdue()
        self.land(route)
        return True

    def land(self, route: Route) -> None:
        """Wait for the reply that is under way there, if one is, and read it. Raises the server
        errors."""
        subscription = self._flying.pop(route, None)
        if subscription is not None:
            self._take_in(subscription, subscription.receive(), False)
            while subscription.stops.late:
                self._revoke(subscription, *subscription.stops.late.pop())

    def _passed_on(self, subscription: Subscription) -> bool:
        subscription.pass_on()
        return subscription.state == "interested"

    def isolate(self, job: Now | None = None) -> bool:
        """See to the job that is to run alone; whether anything changed. job: see `guarded`."""
        with self.lock:
            if job is not None and self.slot.job is not job:
                return False
            changed = self.isolation.advance(monotonic())
            ready, self.isolation.ready = self.isolation.ready, None
            if ready is not None:
                self.divert(ready[0], *ready[1])
            return changed

    # -- in their order ----------------------------------------------------------------------------

    def _take_in(self, subscription: Subscription, jobs: list[bytes], blocked: bool) -> None:
        """Put the jobs of a reply where they will run: behind those that were delivered before
        them, also where these are not read yet, before those that were delivered after them
        (X-25)."""
        if not jobs and not subscription.aside:
            return
        if jobs and subscription.overtakes:
            subscription.held_up = True
            try:
                for wake in self._listen(subscription.route):
                    self.hear(wake)
                if subscription.overtakes:
                    subscription.ask()
                    subscription.disown(jobs[::2])
                    self._recall(subscription, blocked)
                    return
            except ServerError:
                subscription.disown(jobs[::2])
                raise
            finally:
                subscription.held_up = False
        mixed = bool(subscription.aside)
        jobs = subscription.merge(jobs)
        if not jobs:
            return
        if mixed or (subscription.todo and came_back(Delivery(jobs[0], jobs[1]))):
            taken = self._take_unstarted(subscription)
            taken += [(jobs[i], jobs[i + 1], subscription.now) for i in range(0, len(jobs), 2)]
            self._deal_in_order(subscription, taken)
        else:
            self.deal(subscription, jobs, subscription.now)

    def _recover(self, subscription: Subscription, blocked: bool) -> None:
        """Tell what ended, then ask what is held (H-18)."""
        subscription.settle(None)
        self._recall(subscription, blocked)

    def _recall(self, subscription: Subscription, blocked: bool) -> None:
        """Ask what is held; what has not begun is begun in the queue's order."""
        subscription.disown(subscription.aside[::2])
        # not by a look at what waits and runs: jobs move between them meanwhile
        known = set(subscription.unsettled)
        released = subscription.released
        flat = subscription.recall(self.window(subscription, blocked))
        named = set(flat[::2])
        waiting = [(flat[i], flat[i + 1], subscription.now) for i in range(0, len(flat), 2)]
        waiting = [job for job in waiting if job[0] not in known]
        place = {id_: at for at, id_ in enumerate(flat[::2])}
        for job in self._take_unstarted(subscription):
            # a job that is not named here is no longer held; one that has just begun is refused
            if job[0] in named:
                waiting.append(job)
        waiting.sort(key=lambda job: place[job[0]])
        later: list[Unstarted] = []
        if released:  # jobs delivered then are behind those that went back
            later = [job for job in waiting if not came_back(Delivery(job[0], job[1]))]
            waiting = [job for job in waiting if job not in later]
        self._deal_in_order(subscription, waiting)
        subscription.back.extend((id_, value) for id_, value, _ in later)
