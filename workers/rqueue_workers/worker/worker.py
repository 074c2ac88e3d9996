"""A worker process: joins its queues, runs their jobs, leaves in order.

`run` is what the supervisor calls in the forked child. Between jobs the main thread settles and
pulls in one call; while one of its jobs runs long the stand-by thread does it
(`rqueue_workers.worker.standby_thread`); threads and the event loop run jobs beside it.
"""

from __future__ import annotations

from time import monotonic

from rqueue.errors import (
    ConsumerRefused,
    UnusableServer,
)
from rqueue.logs import logger
from rqueue.model.server_url import is_cluster_url
from rqueue.protocol.advice import describe
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks import app
from rqueue.tasks.middleware import WorkerInfo
from rqueue.tasks.registry import registry
from rqueue.transport.redis_client import open_client
from rqueue_workers.exit_codes import Exit
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import (
    READY,
    StatusPage,
)
from rqueue_workers.worker.app_import import (
    AppError,
    doubts,
    import_app,
    notes,
    say_where,
)
from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.composing import Held
from rqueue_workers.worker.current_job import INTERRUPT, CurrentJob
from rqueue_workers.worker.departure import Departure
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.error_text import text
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.executors.event_loop import EventLoopExecutor
from rqueue_workers.worker.executors.main_thread import MainThreadExecutor
from rqueue_workers.worker.executors.threads import ThreadExecutor
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.news import News
from rqueue_workers.worker.outage import DescriptorsClosed, DescriptorsExhausted, is_closed
from rqueue_workers.worker.recycling import Recycling
from rqueue_workers.worker.route import open_routes
from rqueue_workers.worker.services import Services
from rqueue_workers.worker.shutdown import Stop
from rqueue_workers.worker.standby_thread import StandbyThread
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import ASYNC, THREAD, Plan, load_plans
from rqueue_workers.worker.under_way import ANSWER_S

log = logger("rqueue.worker")


def run(spec: WorkerSpec, page: StatusPage, base: str, parent_pid: int) -> int:
    """Be a worker process until it is asked to leave; returns its exit code (see `exits`).

    base: the worker's name, the first part of its consumers' names. parent_pid: of the supervisor,
    0 = there is none. The caller ends the process with the code: threads may still be in jobs.
    """
    stop = Stop(page, spec.drain, spec.settings.lease_ms / 1000, parent_pid)
    stop.install()
    try:
        try:
            say_where(spec.settings)
            held: Held = {}
            idle = import_app(spec.app)
            plans = load_plans(spec, held=held)
            stop.reclaim()
            served = [*dict.fromkeys(map(spec.queue_of, spec.queues))]
            page.words = "\n".join([*doubts(idle, served, registry), *notes(served, registry)])
        except AppError as error:
            page.words = str(error)  # the supervisor logs it, once for all its workers
            return Exit.APP
        child = Worker(spec, page, base, plans, stop, held)
        try:
            return child.run()
        except AppError as error:
            page.words = str(error)
            return Exit.APP
        except (OSError, DescriptorsClosed) as error:
            if not is_closed(error):
                raise
            child.accuse()
            return Exit.BROKEN
        except DescriptorsExhausted as error:
            page.blame_us()  # whose leak it is, nobody knows
            log.error(
                "no file descriptor is left for a connection (%s): jobs leave some open; the worker"
                " ends, and what it held goes to the next one",
                error.__cause__,
            )
            return Exit.INTERNAL
        finally:
            child.forks.unwatch()
    except (UnusableServer, ConsumerRefused) as error:
        page.words = describe(error)
        return Exit.REDIS
    except Exception:
        page.blame_us()
        log.exception("the worker fails: a bug in rqueue, or data that it did not write")
        return Exit.INTERNAL
    finally:
        stop.uninstall()


class Worker:
    """One worker process."""

    def __init__(
        self,
        spec: WorkerSpec,
        page: StatusPage,
        base: str,
        plans: dict[str, Plan],
        stop: Stop,
        held: Held | None = None,
    ) -> None:
        self.spec = spec
        self.page = page
        self.base = base
        self.plans = plans
        self.stop = stop
        settings = spec.settings
        url, limit = settings.url or "", settings.connect_timeout
        if is_cluster_url(url):
            limit = min(limit, ANSWER_S)
        self.client = open_client(url, socket_connect_timeout=limit)
        queues = [QueueKeys(queue, settings.namespace) for queue in spec.queues]
        routes = open_routes(self.client, settings, queues)
        self.routes = list(dict.fromkeys(routes))
        self._apart = self.routes[0].apart
        self.subscriptions = [
            Subscription(
                i,
                keys,
                route.connection,
                base,
                page,
                spec.prefetch,
                spec.history_bodies,
                spec.history_labels,
                settings=settings,
                reporter=route.reporter,
            )
            for i, (keys, route) in enumerate(zip(queues, routes, strict=True))
        ]
        for subscription, route in zip(self.subscriptions, routes, strict=True):
            subscription.route = route
            subscription.executors = {
                plan.executor
                for plan in plans.values()
                if plan.queue == spec.queue_of(subscription.queue)
            }
        self.attempts = Attempts(spec, plans, base, settings.signer, tuple(app.middleware()))
        info = WorkerInfo(base, spec.queues, tuple(plans))
        tasks = [registry.get(name) for name in plans if name in registry]
        self.services = Services(info, tasks, {} if held is None else held)
        self.slot = CurrentJob(base)
        self.news = News(self.slot, stop)
        self.forks = Forks(self._strip)
        self.executors: dict[int, Executor] = {}
        first = 1
        self.recycling = Recycling(spec.max_jobs, spec.max_rss)
        parts = (self.attempts, page, self.news, spec.prefetch, self.forks, self.recycling)
        if spec.threads:
            self.executors[THREAD] = ThreadExecutor(spec.threads, 0, *parts)
            first = spec.threads
        waits = any(plan.executor == ASYNC for plan in plans.values()) or self.services.waits
        if spec.async_slots and waits:
            self.executors[ASYNC] = EventLoopExecutor(spec.async_slots, first, *parts)
        self.dispatcher = Dispatcher(
            spec,
            self.subscriptions,
            self.executors,
            self.attempts,
            self.routes,
            self.slot,
            page,
        )
        self.departure = Departure(self.dispatcher, self.slot, page, stop, self.news)
        self.standby = StandbyThread(self.dispatcher, self.slot, page, self.departure, self.news)
        self.main = MainThreadExecutor(
            self.slot, self.attempts, page, self.news, self.executors, self.forks,
            self.dispatcher.ack_early, self.recycling,
        )  # fmt: skip
        stop.owns(INTERRUPT)

    # -- life --------------------------------------------------------------------------------------

    def run(self) -> int:
        """Join, work, leave."""
        loop = self.executors.get(ASYNC)
        self.services.open(loop if isinstance(loop, EventLoopExecutor) else None)
        self.stop.reclaim()
        self.main.timers.watch()
        self.forks.watch()
        self.standby.start()
        while not self.stop.level and not self.dispatcher.join():
            self.stop.pause(self.dispatcher.waiting)
        if not self.stop.level:
            self.page.set_phase(READY)
        log.debug("worker %s serves %s", self.base, ", ".join(self.spec.queues))
        self._work()
        code = self.departure.leave()
        if not self.departure.unfinished:
            self.services.close()
            for executor in self.executors.values():
                executor.close()
            self.standby.close()
            for route in self.routes:
                route.close()
        log.debug("worker %s left", self.base)
        return code

    def _work(self) -> None:
        """Run what waits, a batch of one queue after the other, and settle and pull between; wait
        where there is nothing to do."""
        dispatcher, run, stop, recycling = self.dispatcher, self.main.run, self.stop, self.recycling
        several = len(self.subscriptions) > 1
        only = None if several or self._apart else self.subscriptions[0]
        while not stop.level:
            if len(dispatcher.away) == len(dispatcher.routes):
                self._wait_out()
            elif (
                (subscription := only or self._next()) is not None
                and subscription.todo
                and not subscription.damage.since
            ):
                seconds = run(subscription)
                if subscription.route.away:
                    pass  # what ended is reported when Redis is back
                elif subscription.todo:
                    dispatcher.post(subscription)
                else:
                    dispatcher.step(subscription)
                if several:
                    dispatcher.polling.ran(subscription, seconds)
                    dispatcher.look_around(subscription)
            else:
                self.news.rung = False
                isolation = dispatcher.isolation
                if (
                    not (isolation.watching and dispatcher.isolate())
                    and not dispatcher.look_around()
                    and not dispatcher.wait(dispatcher.rest(monotonic()), stop.fd)
                ):
                    stop.clear()
                    stop.look()
                    dispatcher.look_at_page()
            if recycling.active and recycling.due():
                log.info("worker %s leaves: %s", self.base, recycling.reason)
                break

    def _next(self) -> Subscription | None:
        """Whose jobs run now: one of several subscriptions, or one that has a route of its own. The
        others need not wait for those whose route is away."""
        dispatcher = self.dispatcher
        if not dispatcher.away:
            return dispatcher.polling.next(self._barred() if self._apart else ())
        self._try_again()
        resting = self._barred()
        for subscription in resting:
            if subscription.route.away:
                # others need not wait until it is known whether they may begin
                subscription.release_unstarted()
        return dispatcher.polling.next(resting)

    def _wait_out(self) -> None:
        """Redis is gone. The jobs that are held may run while the lease is sure to last."""
        dispatcher = self.dispatcher
        subscription = dispatcher.polling.next(self._barred())
        if any(one.settle_first for one in self.subscriptions):
            subscription = None
        if subscription is not None:
            dispatcher.polling.ran(subscription, self.main.run(subscription))
        elif dispatcher.waiting:
            self.stop.pause(dispatcher.waiting)
        self._try_again()

    def _barred(self) -> list[Subscription]:
        """The subscriptions of which nothing may begin while Redis is gone."""
        sure = self.spec.settings.lease_ms / 3000
        return [one for one in self.subscriptions if one.barred(sure)]

    def _try_again(self) -> None:
        """Use the routes on which Redis was gone, where it is time to."""
        for route in list(self.dispatcher.away):
            if route.waiting:
                continue
            for subscription in self.dispatcher.on(route):
                subscription.doubtful = True
            for subscription in self.dispatcher.on(route):
                self.dispatcher.step(subscription)
                if route.waiting:
                    break

    def accuse(self) -> None:
        """A job has closed the worker's descriptors. The one that ended last is named on the page
        as if it still ran, so that it is the one that is charged."""
        ended = [
            (subscription, row)
            for subscription in self.subscriptions
            for row in subscription.unreported
        ]
        if not ended:
            log.error("a job closed file descriptors of the worker: it ends")
            return
        subscription, row = max(ended, key=lambda one: one[1][6])
        log.error(
            "job %s of %s closed file descriptors of the worker: it ends", text(row[0]), row[3]
        )
        self.page.start(0, subscription.index, row[0], row[5], 0.0, row[4])

    def _strip(self) -> None:
        """In a child that a job forked: it begins no other job, and has no part in the worker's
        connections. They are closed here and go on there."""
        for subscription in self.subscriptions:
            subscription.todo.clear()
        for executor in self.executors.values():
            executor.strip()
        for route in self.routes:
            for connection in route.connections:
                if connection.socket is not None:
                    connection.socket.close()
