"""What a worker hears, the wake-ups of its consumers on all its routes, and where it deals the jobs
that come with them or with a reply."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from orjson import dumps

from rqueue.errors import CommandRefused, ConnectionLost, QueueDamaged, RedisTimeout, ServerError
from rqueue.model.job import EPOCH_MS, Delivery, has_crashed
from rqueue.model.job_order import overtakers
from rqueue.model.locks import new_lock
from rqueue.protocol.error_mapping import is_wrong_type
from rqueue.protocol.wake import JOB, Wake
from rqueue.transport.resp import readable
from rqueue.transport.wake_listener import first_readable
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.executors.base import Executor, Job
from rqueue_workers.worker.membership import Membership
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.subscription import Subscription, Unstarted
from rqueue_workers.worker.task_plans import ASYNC, MAIN

POLL_S = 0.004
"""Seconds between looks at the wake lists while there is work anyway."""


class Hearing(Membership):
    """Who is woken, and by what; which job runs where. Used under the dispatcher's lock, but for
    `wait`."""

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
        self.lock = new_lock()
        self._posted: dict[Route, Subscription] = {}
        """By route, whose settle call was sent: its reply is read before any other call."""
        self._poll_at = 0.0
        """When to look at the wake lists where there is work anyway."""
        plans = attempts.plans.values()
        self._async = {dumps(plan.name)[1:-1] for plan in plans if plan.executor == ASYNC}
        """Names of the async tasks, as they stand in envelopes."""

    def gone(self, route: Route, error: ServerError) -> None:
        """As `Membership.gone`. Where a call had no answer in time, who listens there may never
        hear anything: a connection to a host that has vanished does not end."""
        if isinstance(error, RedisTimeout):
            route.listener.suspect()
        super().gone(route, error)

    def land(self, route: Route) -> None:
        """Wait for what is under way on a route, if something is. Raises the server errors."""
        raise NotImplementedError

    def poll(self) -> None:
        """Hear what came meanwhile."""
        self._poll_at = monotonic() + POLL_S
        for route in self.routes:
            if not route.heard or route.away:
                continue
            if route.under_way is None or self._hears(route):
                for wake in self._heard(route):
                    self.hear(wake)

    def _hears(self, route: Route) -> bool:
        """Whether to listen where calls are under way: only while the reply to one that settles is
        awaited, since what is heard while it is asked what is held has no place in what that says;
        and not where that takes a connection, which the node may leave unanswered too."""
        return route.listening.connected and any(one.flight for one in self.on(route))

    def _heard(self, route: Route) -> list[Wake]:
        """What is heard on a route by now; nothing where Redis is gone, or a queue damaged, which
        is noted."""
        try:
            return route.listener.wait(0)
        except ServerError as error:
            return self._heard_still(route, error)

    def _heard_still(self, route: Route, failed: ServerError) -> list[Wake]:
        """What is heard when a listener has failed, as `_heard`."""
        try:
            return self._heard_anew(route, failed)
        except QueueDamaged as error:
            self.leave_alone(error)
        except ServerError as error:
            self.gone(route, error)
        return []

    def _heard_now(self, route: Route) -> list[Wake]:
        """What is heard on a route by now. Raises the server errors and QueueDamaged."""
        try:
            return route.listener.wait(0)
        except ServerError as error:
            return self._heard_anew(route, error)

    def _heard_anew(self, route: Route, error: ServerError) -> list[Wake]:
        """What is heard when a listener has failed. Raises the server errors and QueueDamaged."""
        if isinstance(error, ConnectionLost | RedisTimeout):
            # a connection that died unnoticed says so when it is used: only a fresh one can tell
            # whether Redis is gone
            return route.listener.wait(0)
        if isinstance(error, CommandRefused):
            self._find_damaged_wake(route)
            if isinstance(error.__cause__, Exception) and is_wrong_type(error.__cause__):
                return route.listener.wait(0)  # it was repaired meanwhile
        raise error

    def _find_damaged_wake(self, route: Route) -> None:
        """One command waits for the wake-ups of all queues of a route: where the list of one is of
        another type, it is left out. Raises QueueDamaged then, and the server errors."""
        self.land(route)
        for subscription in [one for one in self._by_name.values() if one.route is route]:
            try:
                subscription.check_wake()
            except QueueDamaged:
                self.unlisten(subscription)
                raise

    def hear(self, wake: Wake) -> None:
        """Act on a wake-up."""
        subscription = self._by_name.get(wake.consumer)
        if subscription is None:
            return
        element = wake.element
        if element[:1] == JOB:
            job = subscription.delivered(element)
            if job is None:
                return
            now = int(monotonic() * 1000 + subscription.clock.offset)
            if not self._is_new(job[1], now, subscription.trust_s):
                subscription.doubtful = True  # it has been on its way for long
            if subscription.flight is not None or subscription.doubtful or subscription.held_up:
                subscription.aside += job  # a reply that is not read yet may stand before it
            elif subscription.released:
                subscription.back.append(job)
            else:
                self.deal(subscription, job, now)
        elif wake.kind == "revoked":
            id_ = wake.id.encode()
            # others may have been cancelled with it: this is heard of one by one
            subscription.doubtful |= id_ in subscription.unsettled
            self._revoke(subscription, id_, wake.force)
        elif wake.kind == "reconnected":
            subscription.reconnected()
        elif wake.kind == "shards":
            self._page.heard_of_shards()
        else:
            subscription.notified()

    @staticmethod
    def _is_new(value: bytes, now: int, trust_s: float) -> bool:
        """Whether a job that was delivered directly has come by now, ms, Redis's clock, without
        delay: it was delivered when it was enqueued."""
        head = value[: value.find(b";")].partition(b"|")[0].split(b",", 2)
        try:
            age = now - EPOCH_MS - int(head[1])
        except (IndexError, ValueError):
            return False
        return -1000 * trust_s < age < 1000 * trust_s

    def deal(self, subscription: Subscription, jobs: Sequence[bytes], acquired: int) -> None:
        """Put jobs, [id, value, ...], where they will run. acquired: ms, Redis's clock."""
        if self.closing or subscription.back or self.isolation.active:
            # an executor would begin them at once, and before those that are about to go back
            flat = iter(jobs)
            subscription.back.extend(zip(flat, flat, strict=True))
            return
        if not self.executors:
            subscription.add(jobs, acquired)
            return
        for i in range(0, len(jobs), 2):
            id_, value = jobs[i], jobs[i + 1]
            end = value.find(b";")
            if value.count(b",", 0, end) > 1 and has_crashed(value):  # most headers are short
                # one that cannot run here waits for nobody
                if self._attempts.decoded(subscription, id_, value, acquired) is None:
                    continue
                if self.isolation.admit(subscription, (id_, value, acquired)):
                    self.deal(subscription, jobs[i + 2 :], acquired)
                    return
                continue
            self.isolation.wary = False
            # known by a look at the bytes: a name that is not found there is taken for a sync task,
            # and the main thread finds out when it decodes the job
            start = value.find(b'["', end) + 2
            if self._threaded or value[start : value.find(b'"', start)] in self._async:
                self.divert(subscription, id_, value, acquired)
            else:
                subscription.executors.add(MAIN)
                subscription.todo.append((id_, value, acquired))

    def divert(self, subscription: Subscription, id: bytes, value: bytes, acquired: int) -> None:
        """Give one job to the executor it belongs to."""
        decoded = self._attempts.decoded(subscription, id, value, acquired)
        if decoded is None:
            return
        head, plan, args, kwargs, opts = decoded
        if plan.executor == MAIN:
            subscription.todo.append((id, value, acquired))
            return
        subscription.executors.add(plan.executor)
        subscription.diverted += 1
        job = Job(subscription, id, value, acquired, head, plan, args, kwargs, opts)
        self.executors[plan.executor].submit((job,))

    def _deal_in_order(self, subscription: Subscription, taken: list[Unstarted]) -> None:
        """Deal jobs, in the order of taking. One that was delivered before an earlier one came
        back goes back itself: others may wait between the two (Q-01)."""
        early = overtakers([Delivery(id_, value) for id_, value, _ in taken])
        for id_, value, acquired in taken:
            if id_.decode() not in early:
                self.deal(subscription, (id_, value), acquired)
        back = [(id_, value) for id_, value, _ in taken if id_.decode() in early]
        subscription.back.extend(back)

    def wait(self, timeout: float | None, interrupt: int) -> bool:
        """Wait for a wake-up, or for `interrupt` to become readable; True if there was the one."""
        routes = [
            route
            for route in self.routes
            if route.heard and not route.away and (route.under_way is None or self._hears(route))
        ]
        calls = self._awaited() if self.routes[0].apart else []
        if not routes:  # all queues are damaged, or those that are not cannot be reached
            readable([interrupt, *calls], timeout)
            return False
        if len(routes) == 1 and not calls:
            (route,) = routes
            try:
                wakes = route.listener.wait(timeout, interrupt)
            except ServerError as error:
                wakes = self._heard_still(route, error)
        else:
            wakes = self._heard_first(routes, timeout, interrupt, calls)
        if not wakes:
            return False
        self._poll_at = monotonic() + POLL_S
        with self.lock:
            for wake in wakes:
                self.hear(wake)
        return True

    def _awaited(self) -> list[Any]:
        """What becomes readable when there is a reply to calls that are under way."""
        ways = [way for route in self.routes for way in route.ways]
        return [way.socket for way in ways if way.socket is not None]

    def await_replies(self, seconds: float) -> None:
        """Wait for a reply to calls that are under way, at most so long."""
        ways = [route.under_way for route in self.routes if route.under_way is not None]
        now = monotonic()
        if ways and not any(way.stirs(now) for way in ways):
            left = min(seconds, *(way.look_at - now for way in ways))
            awaited = [way.socket for way in ways if way.socket is not None]
            readable(awaited, left)

    def _heard_first(
        self, routes: Sequence[Route], timeout: float | None, interrupt: int, calls: Sequence[Any]
    ) -> list[Wake]:
        """What is heard first on one of several routes, as `_heard`; nothing where something is to
        be read from one of the sockets `calls` before."""
        found = [wake for route in routes for wake in self._heard(route)]
        if not found and not any(route.away for route in routes):
            ready = first_readable([route.listener for route in routes], timeout, interrupt, calls)
            for route in routes:
                if route.listener in ready:
                    found += self._heard(route)
        return found
