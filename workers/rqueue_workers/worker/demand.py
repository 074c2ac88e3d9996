"""How many jobs a worker's subscriptions may hold, which of them have something to report or to ask
for, and when they will: these take the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from rqueue_workers.spec import WorkerSpec
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob, Now
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.executors.threads import ThreadExecutor
from rqueue_workers.worker.job_places import JobPlaces
from rqueue_workers.worker.queue_polling import QueuePolling
from rqueue_workers.worker.subscription import UNKNOWN, Subscription
from rqueue_workers.worker.task_plans import MAIN

LINGER_S = 0.002
"""Seconds that ended jobs of busy executors wait for company, to be settled together."""

_MAIN_ALONE = {MAIN}


class Demand(JobPlaces):
    """What a worker wants of its queues now. Used under the dispatcher's lock, or to look."""

    def __init__(
        self,
        spec: WorkerSpec,
        subscriptions: Sequence[Subscription],
        executors: dict[int, Executor],
        attempts: Attempts,
        slot: CurrentJob,
    ) -> None:
        super().__init__(subscriptions, executors, attempts, slot)
        self.spec = spec
        self.polling = QueuePolling(subscriptions, spec.strict, spec.weights)
        self._strict = spec.strict
        self._prefetch = spec.prefetch
        self._several = len(subscriptions) > 1
        self._shares = self._several and not spec.strict

    def window(self, subscription: Subscription, blocked: bool) -> int:
        """Jobs that a subscription may hold after this step, all in all."""
        # `pending`, written out on the way of every call
        ended = len(subscription.acks) + len(subscription.dones) + len(subscription.others)
        ended += len(subscription.back) + len(subscription.passing)
        staying = len(subscription.unsettled) - ended
        if staying < 0:
            staying = 0
        isolation = self.isolation
        if (
            self.closing
            or isolation.active
            or isolation.aloof
            or (self._strict and not self.polling.pulls(subscription))
        ):
            return staying
        room = 0
        seen = subscription.executors
        if not self._threaded and not blocked and (MAIN in seen or not seen):
            room = max(0, subscription.prefetch.window - len(subscription.todo))
        if self.executors and seen != _MAIN_ALONE:
            room += self._room_beside(subscription, staying, blocked)
        if self._prefetch and room > self._prefetch - staying:
            room = max(0, self._prefetch - staying)
        if isolation.wary:
            room = min(room, 1)
        return staying + room

    def _room_beside(self, subscription: Subscription, staying: int, blocked: bool) -> int:
        """Jobs of this subscription, which holds so many already, that the executors have room
        for."""
        room = places = share = 0
        kinds = subscription.executors or UNKNOWN
        blocked = blocked or subscription.behind_main
        if monotonic() >= subscription.hold_until or not (
            blocked or any(executor.blocked for executor in self.executors.values())
        ):
            for kind, executor in self.executors.items():
                if kind in kinds:
                    its, free = places_in(executor)
                    room += free
                    if self._shares:
                        places += its
                        share += self.polling.share(subscription, kind, its)
        if share < places:
            room = max(0, min(room, share - staying + len(subscription.todo)))
        return room

    def look_around(self, but: Subscription | None = None) -> bool:
        """Settle and pull wherever there is reason to, for all but one; whether there was."""
        worked = False
        now = monotonic()
        for subscription in self.polling.in_turn() if self._several else self.subscriptions:
            if subscription is but:
                continue
            route = subscription.route
            if not route.away and self.wants(subscription, now):
                self.step(subscription)
                worked = True
            elif route.apart and self.send_on(subscription):
                worked = True
        return worked

    def step(self, subscription: Subscription, job: Now | None = None) -> None:
        """Settle what ended in a subscription and pull. job: that of the main thread, if it is in
        one."""
        raise NotImplementedError

    def send_on(self, subscription: Subscription, job: Now | None = None) -> bool:
        """Go on with what goes on to other queues, on a cluster, if there is something to do;
        whether there was. job: as in `step`."""
        raise NotImplementedError

    def wants(self, subscription: Subscription, now: float, blocked: bool = False) -> bool:
        """Whether there is something to tell or to ask for."""
        if (under_way := subscription.route.under_way) is not None:
            return under_way.stirs(now)
        if subscription.flight is not None:
            return True
        if subscription.damage.since:
            return now >= subscription.damage.retry_at
        if not subscription.term:
            return not self.closing
        if subscription.doubtful:
            return True
        if subscription.stops.news:
            return True
        if (
            subscription.acks
            or subscription.dones
            or subscription.others
            or subscription.back
            or subscription.passing
        ) and not self._lingers(subscription, now):
            return True
        if self.closing:
            return False
        state = subscription.state
        if state == "notified" or 0.0 < subscription.timer_at <= now:
            return True
        # who waits for work wants nothing more, unless there is no room any more
        kept_off = blocked or self.isolation.active or self.isolation.aloof
        if state == "interested" and not kept_off:
            return False
        if self.window(subscription, blocked) <= len(subscription.unsettled):
            return kept_off and state == "interested"
        return state == "not_interested" and not subscription.tight

    def _lingers(self, subscription: Subscription, now: float) -> bool:
        if not self.executors or self.closing:
            return False
        if (
            subscription.others
            or subscription.back
            or subscription.passing
            or subscription.dones
            or subscription.early
            or not subscription.acks
        ):
            return False
        if not any(executor.todo for executor in self.executors.values()):
            return False
        return now < subscription.acks[0][6] + LINGER_S and len(subscription.acks) < 100

    def rest(self, now: float) -> float | None:
        """Seconds until something has to be looked at without a wake-up; None = nothing has."""
        times = [
            subscription.timer_at - now
            for subscription in self.subscriptions
            if subscription.timer_at and not subscription.away and not subscription.engaged
        ]
        for subscription in self.subscriptions:
            if subscription.route.away:
                times.append(subscription.route.waiting)
                continue
            if subscription.route.apart:  # else each reply has been waited for
                times += [way.look_at - now for way in subscription.route.ways]
                if subscription.engaged:
                    continue
            if subscription.damage.since:
                times.append(subscription.damage.retry_at - now)
                continue
            if subscription.hold_until > now and self.executors:
                times.append(subscription.hold_until - now)
            if subscription.acks:
                times.append(subscription.acks[0][6] + LINGER_S - now)
        isolation = self.isolation
        if isolation.watching and not self.closing and (until := isolation.until):
            times.append(until - now)
        for executor in self.executors.values():
            if executor.todo:
                again, released = executor.stall(now)
                if again:
                    times.append(again)
                for subscription in released:
                    subscription.hold(now)
            if isinstance(executor, ThreadExecutor) and (again := executor.limits(now)):
                times.append(again)
        if any(one.back and not (one.away or one.engaged) for one in self.subscriptions):
            return 0.0
        return max(0.0, min(times)) if times else None


def places_in(executor: Executor) -> tuple[int, int]:
    """How many jobs an executor may have, one for each slot and some ahead; and how many more than
    run there, or wait."""
    its = executor.slots
    if not (executor.stalled and executor.blocked):
        its += executor.credit.window
    free = its - len(executor.running) - len(executor.todo)
    return its, free if free > 0 else 0
