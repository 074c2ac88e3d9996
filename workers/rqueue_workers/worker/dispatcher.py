"""The dispatcher: settles what ended, pulls what there is room for, puts jobs into their order.

The main thread works at it between jobs; while a job of its own runs long, the stand-by thread
does. One lock is taken for each batch, none for a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from time import monotonic

from rqueue.errors import QueueDamaged, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import came_back
from rqueue.protocol.course import Calls, run_course
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob, Now
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.hearing import Hearing
from rqueue_workers.worker.outcome import Ack
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.settle_calls import CHUNK
from rqueue_workers.worker.subscription import Subscription, Unstarted
from rqueue_workers.worker.under_way import ANSWER_S, BRIEF_S

log = logger("rqueue.worker")

OTHERS_S = 0.05
"""Seconds that a worker which has joined one queue waits for others, before it begins to work."""


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
                action(*arguments)
            except (RegistrationLost, QueueDamaged, ServerError) as error:
                return self.noted(route, error)
            return True

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
                if (under_way := subscription.route.under_way) is not None:
                    under_way.hurry()
                elif subscription.route not in self._posted:  # else that call will tell
                    subscription.route.connection.suspect()

    def join(self) -> bool:
        """Register in all queues that can be reached; whether one of their routes is there."""
        for route in self.routes:
            if not route.waiting:
                self.guarded(route, self._enter, route)
        until = monotonic() + ANSWER_S
        while (under_way := [route for route in self.routes if route.under_way is not None]) and (
            left := until - monotonic()
        ) > 0:
            self.await_replies(left)
            for route in under_way:
                self.guarded(route, route.go_on)
            if any(subscription.term for subscription in self.subscriptions):
                until = min(until, monotonic() + OTHERS_S)
        return any(not route.away and route.under_way is None for route in self.routes)

    def _enter(self, route: Route) -> None:
        if route.apart:
            (subscription,) = self.on(route)
            if route.go_on():
                route.begin(self.entering(route), subscription)
        else:
            run_course(self.entering(route), route.connection.run)

    def step(self, subscription: Subscription, job: Now | None = None) -> None:
        """Settle what ended in a subscription and pull. job: see `guarded`; the main thread is in
        it."""
        with self.lock:  # as `guarded`, on the way of every job
            if job is None or self.slot.job is job:
                try:
                    self._step(subscription, job is not None)
                except (RegistrationLost, QueueDamaged, ServerError) as error:
                    self.noted(subscription.route, error)

    def _step(self, subscription: Subscription, blocked: bool) -> None:
        route = subscription.route
        if route.apart:
            if subscription.sends_on:
                self._send_on(subscription)
            if not self._may_go_on(subscription, blocked):
                return
            if not route.begin(self._stepping(subscription, blocked), subscription):
                return
        else:
            if self._posted:
                self.land(route)
            if (  # as `_takes_long`, which would be a call more on the way of every job
                subscription.damage.since
                or not subscription.term
                or subscription.doubtful
                or subscription.passing
                or route.away
            ):
                run_course(self._stepping(subscription, blocked), subscription.run)
            else:
                jobs = subscription.settle(self.window(subscription, blocked))
                if (jobs or subscription.aside) and not self._take_in(subscription, jobs):
                    run_course(self._recalling(subscription, blocked), subscription.run)
        if monotonic() >= self._poll_at:
            self.poll()  # last: a client may wait for an outcome that was settled

    def send_on(self, subscription: Subscription, job: Now | None = None) -> bool:
        """Go on with what goes on to other queues, on a cluster, if there is something to do;
        whether there was. job: see `guarded`."""
        if not subscription.sends_on:
            return False
        forward = subscription.route.forward
        if forward is not None and not forward.stirs(monotonic()):
            return False
        return self.guarded(subscription.route, self._send_on, subscription, job=job)

    def _send_on(self, subscription: Subscription) -> None:
        route = subscription.route
        route.go_on_forward()
        if route.forward is None and subscription.owes_forward:
            route.send_on(subscription.forwarding(), subscription)

    def _may_go_on(self, subscription: Subscription, blocked: bool) -> bool:
        """Read the replies that are there to what is under way on a subscription's route. Whether
        something may be said to its queue then: not before all is done, nor where it leaves nothing
        to say."""
        engaged = subscription.engaged
        if not self.landed(subscription.route):
            return False
        return not engaged or self.wants(subscription, monotonic(), blocked)

    def _stepping(self, subscription: Subscription, blocked: bool) -> Calls[None]:
        """One step of a subscription, call by call."""
        route = subscription.route
        if subscription.damage.since:
            yield from self._returning_to(subscription)
        elif not subscription.term:
            yield from self.entering(route)
            if not subscription.term:
                return  # it is damaged
        if subscription.doubtful:
            # tell what ended, then ask what is held (H-18)
            yield from subscription.settling(None)
            yield from self._recalling(subscription, blocked)
        elif subscription.passing and (yield from self._passing_on(subscription)):
            pass  # the others first
        else:
            jobs = yield from subscription.settling(self.window(subscription, blocked))
            if not self._take_in(subscription, jobs):
                yield from self._recalling(subscription, blocked)
        if route.away:
            self.back(route)
        if subscription.damage.since:
            subscription.damage.over(subscription.queue)
        yield from self._finishing(subscription)

    def _finishing(self, subscription: Subscription) -> Calls[None]:
        """What is left to do when all has been said."""
        if subscription.aside and not subscription.doubtful:
            self._take_in(subscription, [])
        while subscription.stops.late:
            self._revoke(subscription, *subscription.stops.late.pop())
        if not subscription.route.apart:
            yield from subscription.forwarding()

    def _returning_to(self, subscription: Subscription) -> Calls[None]:
        """Ask a queue again that was damaged."""
        if not subscription.term:
            yield from self.entering_late(subscription)
        elif self._label(subscription) not in self._by_name:
            self.listen(subscription)

    def _passing_on(self, subscription: Subscription) -> Calls[bool]:
        yield from subscription.passing_on()
        return subscription.state == "interested"

    def ack_early(self, subscription: Subscription, row: Ack) -> bool:
        """Ack the main thread's next job before it begins (Q-24). False where it must not begin; or
        not yet, since other queues are seen to while the answer is on its way: it comes again."""
        if row[0] in subscription.acked:
            subscription.acked.discard(row[0])
            return True
        answers: list[bool] = []
        subscription.ack_early(row, answers.append)
        self.guarded(subscription.route, self._report, subscription)
        with self.lock:
            if not answers and subscription.engaged:
                subscription.ack_meanwhile(row)
                return False
            subscription.withdraw(row)
        return answers == [True]

    def _report(self, subscription: Subscription) -> None:
        route = subscription.route
        if route.apart:
            if route.go_on():
                route.begin(self._reporting(subscription), subscription)
        else:
            self.land(route)
            subscription.settle(None)

    def _reporting(self, subscription: Subscription) -> Calls[None]:
        yield from subscription.settling(None)
        yield from self._finishing(subscription)

    def post(self, subscription: Subscription) -> None:
        """`step` for a subscription that has more to run: its jobs run meanwhile, and the reply is
        read at the dispatcher's next step."""
        self.guarded(subscription.route, self._post, subscription)

    def _post(self, subscription: Subscription) -> None:
        if subscription.route.apart or self._takes_long(subscription):
            self._step(subscription, False)
            return
        self.land(subscription.route)
        subscription.send(self.window(subscription, False))
        self._posted[subscription.route] = subscription
        if monotonic() >= self._poll_at:
            self.poll()

    def _takes_long(self, subscription: Subscription) -> bool:
        """Whether what is to be said takes more than one call, or more than its reply has to be
        known before anything else is done."""
        return bool(
            subscription.damage.since
            or not subscription.term
            or subscription.doubtful
            or subscription.passing
            or subscription.route.away
            or subscription.settle_first
            or subscription.follow_ups.jobs
            or subscription.stops.news
            or subscription.pending > CHUNK
            or self.closing
        )

    def clear(self, subscription: Subscription) -> None:
        """The main thread is in a long job: its other jobs are to go back. Raises the server
        errors."""
        # what is under way comes behind what is here: apart from each other they would overtake
        if not self.landed(subscription.route):
            return
        if subscription.release_unstarted():
            # other executors may still have room, but not for these: look again later
            subscription.hold(monotonic(), behind_main=True)

    def landed(self, route: Route) -> bool:
        """Read the replies that are there to what is under way on a route. Whether nothing is any
        more; a single server is waited for. Raises the server errors."""
        if not route.apart:
            self.land(route)
            return True
        under_way = route.under_way
        return under_way is None or (under_way.stirs(monotonic()) and route.go_on(BRIEF_S))

    def land(self, route: Route) -> None:
        """Wait for what is under way on a route, if something is. Raises the server errors."""
        while not route.go_on(ANSWER_S):
            pass
        subscription = self._posted.pop(route, None)
        if subscription is not None:
            if not self._take_in(subscription, subscription.receive()):
                run_course(self._recalling(subscription, False), subscription.run)
            while subscription.stops.late:
                self._revoke(subscription, *subscription.stops.late.pop())

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

    def _take_in(self, subscription: Subscription, jobs: list[bytes]) -> bool:
        """Put the jobs of a reply where they will run: behind those that were delivered before
        them, also where these are not read yet, before those that were delivered after them (X-25).
        False where one of the former is not heard of: then what is held is to be asked for."""
        if jobs and subscription.overtakes:
            subscription.held_up = True
            try:
                for wake in self._heard_now(subscription.route):
                    self.hear(wake)
            except ServerError:
                subscription.disown(jobs[::2])
                raise
            finally:
                subscription.held_up = False
            if subscription.overtakes:
                subscription.ask()
                subscription.disown(jobs[::2])
                return False
        if subscription.aside and subscription.doubtful:
            subscription.disown(jobs[::2])
            return False
        if not subscription.aside:
            if not jobs:
                return True
            if not subscription.todo or not came_back(Delivery(jobs[0], jobs[1])):
                self.deal(subscription, jobs, subscription.now)
                return True
        flat = iter(subscription.merge(jobs))
        taken = self._take_unstarted(subscription)
        taken += zip(flat, flat, repeat(subscription.now), strict=False)
        self._deal_in_order(subscription, taken)
        return True

    def _recalling(self, subscription: Subscription, blocked: bool) -> Calls[None]:
        """Ask what is held; what has not begun is begun in the queue's order."""
        subscription.disown(subscription.aside[::2])
        # not by a look at what waits and runs: jobs move between them meanwhile
        known = set(subscription.unsettled)
        released = subscription.released
        losses = self._losses
        flat = yield from subscription.recalling(self.window(subscription, blocked))
        if losses != self._losses:
            subscription.doubtful = True  # another one was lost: this answer may be older
        named = set(flat[::2])
        for id_ in known - named:
            self._taken_away(subscription, id_)
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
