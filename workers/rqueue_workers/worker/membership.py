"""A worker's registrations: in each queue under a name of its own, joined, and joined anew where it
was lost; and by which ways Redis cannot be reached.
"""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.errors import QueueDamaged, RegistrationLost, RQueueError, ScriptError, ServerError
from rqueue.logs import logger
from rqueue.protocol.course import Calls
from rqueue.tasks.worker_connection import worker_connection
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage, consumer_of
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.demand import Demand
from rqueue_workers.worker.ended_jobs import warn_late
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import ASYNC, task_limits

log = logger("rqueue.worker")


class Membership(Demand):
    """Where a worker is registered, and whose wake-ups it hears. Used under the dispatcher's lock.

    routes: to all the subscriptions' queues. page: says how often it has joined each queue anew, by
    which its consumer there is named.
    """

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
        super().__init__(spec, subscriptions, executors, attempts, slot)
        self.routes = list(routes)
        self.away: list[Route] = []
        """Those on which Redis is gone."""
        self._by_name: dict[str, Subscription] = {}
        self._page = page
        self._losses = 0
        """Registrations that were lost."""

    # -- Redis goes and comes back -----------------------------------------------------------------

    def gone(self, route: Route, error: ServerError) -> None:
        """A call on a route failed. Raises what waiting does not mend."""
        was = route.away
        route.gone(error)
        if not was:
            self.away.append(route)
        worker_connection.fails(error)

    def noted(self, route: Route, error: RQueueError) -> bool:
        """What an action on a route came to is noted, or made good. Whether Redis could be used."""
        if isinstance(error, RegistrationLost):
            log.warning("%s", error)
            self.rejoin(error)
        elif isinstance(error, QueueDamaged):
            self.leave_alone(error)
        elif isinstance(error, ServerError):
            self.gone(route, error)
            return False
        return True

    def back(self, route: Route) -> None:
        """A call on a route succeeded."""
        if route.away:
            self.away.remove(route)
        route.back()
        if not self.away:
            worker_connection.works()

    @property
    def waiting(self) -> float:
        """Seconds until the next try on one of the routes; 0.0 = now, or none is away."""
        return min((route.waiting for route in self.away), default=0.0)

    def on(self, route: Route) -> list[Subscription]:
        """The subscriptions of a route."""
        return [one for one in self.subscriptions if one.route is route]

    # -- joining -----------------------------------------------------------------------------------

    def entering(self, route: Route) -> Calls[None]:
        """Register in the queues of a route, where that is not done."""
        new = [subscription for subscription in self.on(route) if not subscription.term]
        for steps in (self._joining, self._preparing):
            for subscription in new:
                try:
                    yield from steps(subscription)
                except QueueDamaged as error:
                    self.leave_alone(error)
        self.back(route)

    def entering_late(self, subscription: Subscription) -> Calls[None]:
        """Register in a queue that was damaged when the others were joined."""
        yield from self._joining(subscription)
        yield from self._preparing(subscription)

    def _preparing(self, subscription: Subscription) -> Calls[None]:
        if subscription.term:
            yield from subscription.preparing(list(self._attempts.plans))

    def rejoin(self, error: RegistrationLost) -> None:
        """The registration in one queue was lost, because the lease ended. The others are asked
        whether they know this worker still, since what let one lease end may have let them all. The
        queue is joined anew by the next step of its subscription, when they have been: else those
        that lose it together would be asked once for each of them."""
        (lost,) = [one for one in self.subscriptions if one.queue == error.queue]
        worker_connection.loses()
        self._losses += 1
        self._drop(lost)
        for other in self.subscriptions:
            if other is not lost and other.term:
                other.doubtful = True
        if not self.away:
            worker_connection.works()

    def _joining(self, subscription: Subscription) -> Calls[None]:
        """Register in a queue."""
        for tries in range(5):
            try:
                yield from self._registering_in(subscription)
                return
            except RegistrationLost:
                if tries == 4:
                    raise
            except ScriptError as error:
                if "EXISTS" not in error.reply or tries == 4:
                    raise
            # of an earlier try whose reply was lost, and whose lease has ended meanwhile
            self._drop(subscription)

    def _registering_in(self, subscription: Subscription) -> Calls[None]:
        spec = self.spec
        worker = self._attempts.worker
        # without async tasks their slots run nothing
        slots = max(1, spec.threads) + (spec.async_slots if ASYNC in self.executors else 0)
        yield from subscription.registering(
            consumer_of(worker, self._page.rejoins(subscription.index)),
            priority=spec.priority_in(subscription.queue, worker),
            lease_ms=spec.settings.lease_ms,
            slots=slots,
            limits=task_limits(self._attempts.plans, spec),
            jobs=max(1, self.window(subscription, False)),
            select=spec.select,
        )
        self.listen(subscription)
        plans = self._attempts.plans.values()
        declared = [one for plan in plans for one in plan.declares]
        yield from subscription.declaring(declared, ",".join(spec.app), spec.settings.signer)

    def _drop(self, subscription: Subscription) -> None:
        """A registration is lost: what waits here is others' now, and so is what runs. The next one
        has another name."""
        self._take_unstarted(subscription)
        if subscription.name:
            self.unlisten(subscription)
        subscription.doomed |= self.running_in(subscription)
        if stale := subscription.give_up():
            warn_late(stale)
        self._page.rejoined(subscription.index)

    def leave_alone(self, error: QueueDamaged) -> None:
        """A key of one queue is damaged: the others go on."""
        for subscription in self.subscriptions:
            if subscription.queue == error.queue:
                subscription.damage.note(error)
                subscription.doubtful = True  # the step may be half done

    def listen(self, subscription: Subscription) -> None:
        """Listen for a subscription that was registered."""
        label = self._label(subscription)
        self._by_name[label] = subscription
        subscription.route.heard.add(label)
        if subscription.route.listener.add(label, subscription.keys.wake(subscription.name)):
            self._ask_anew(subscription)

    def unlisten(self, subscription: Subscription) -> None:
        """Hear no more of it."""
        label = self._label(subscription)
        self._by_name.pop(label, None)
        subscription.route.heard.discard(label)
        if subscription.route.listener.remove(subscription.keys.wake(subscription.name)):
            self._ask_anew(subscription)

    def _ask_anew(self, but: Subscription) -> None:
        """What is listened to has changed while it was waited for: a wake-up of another one may be
        lost."""
        for subscription in self.on(but.route):
            if subscription is not but and subscription.term:
                subscription.doubtful = True

    @staticmethod
    def _label(subscription: Subscription) -> str:
        return f"{subscription.name} {subscription.queue}"
