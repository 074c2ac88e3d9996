"""A worker process: joins its queues, runs their jobs, leaves in order.

`run` is what the supervisor calls in the forked child. Between jobs the main thread settles and
pulls in one call; while one of its jobs runs long the stand-by thread does it
(`rqueue_workers.worker.standby_thread`); threads and the event loop run jobs beside it.
"""

from __future__ import annotations

import os
from time import monotonic

from rqueue.errors import (
    QueueDamaged,
    RegistrationLost,
    ScriptError,
    ServerError,
    UnusableServer,
)
from rqueue.logs import logger
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.registry import registry
from rqueue.tasks.worker_connection import worker_connection
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import open_client
from rqueue.transport.wake_listener import WakeListener
from rqueue_workers.exit_codes import Exit
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import (
    DRAIN,
    DRAINING,
    LEAVING,
    READY,
    STOP,
    WAITING,
    StatusPage,
    consumer_of,
)
from rqueue_workers.worker.app_import import AppError, doubts
from rqueue_workers.worker.attempt import Attempts, text
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.executors.event_loop import EventLoopExecutor
from rqueue_workers.worker.executors.main_thread import CurrentJob, MainThreadExecutor, Now
from rqueue_workers.worker.executors.threads import ThreadExecutor
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.outage import DescriptorsClosed, is_closed
from rqueue_workers.worker.recycling import Recycling
from rqueue_workers.worker.settle_calls import warn_late
from rqueue_workers.worker.shutdown import Stop
from rqueue_workers.worker.standby_thread import StandbyThread
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import ASYNC, THREAD, Plan, load_plans, task_limits

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
            plans = load_plans(spec)
            page.words = "\n".join(doubts(spec.app, spec.queues, registry))
        except AppError as error:
            page.words = str(error)  # the supervisor logs it, once for all its workers
            return Exit.APP
        child = Worker(spec, page, base, plans, stop)
        try:
            return child.run()
        except (OSError, DescriptorsClosed) as error:
            if not is_closed(error):
                raise
            child.accuse()
            return Exit.BROKEN
        finally:
            child.forks.unwatch()
    except UnusableServer as error:
        page.words = str(error)
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
        self, spec: WorkerSpec, page: StatusPage, base: str, plans: dict[str, Plan], stop: Stop
    ) -> None:
        self.spec = spec
        self.page = page
        self.base = base
        self.plans = plans
        self.stop = stop
        settings = spec.settings
        self.client = open_client(
            settings.url or "",
            socket_connect_timeout=settings.connect_timeout,
        )
        self.connection = Connection(self.client, timeout=settings.command_timeout)
        self.subscriptions = [
            Subscription(
                i,
                QueueKeys(queue, settings.namespace),
                self.connection,
                base,
                page.add_done,
                spec.prefetch,
                spec.history_bodies,
                spec.history_labels,
                settings=settings,
            )
            for i, queue in enumerate(spec.queues)
        ]
        for subscription in self.subscriptions:
            subscription.executors = {
                plan.executor for plan in plans.values() if plan.queue == subscription.queue
            }
        self.attempts = Attempts(spec, plans, base, settings.signer)
        self.slot = CurrentJob(base)
        self.forks = Forks(self._strip)
        self.executors: dict[int, Executor] = {}
        first = 1
        parts = (self.attempts, page, self._kick, spec.prefetch, self.forks)
        if spec.threads:
            self.executors[THREAD] = ThreadExecutor(spec.threads, 0, *parts)
            first = spec.threads
        if spec.async_slots and any(plan.executor == ASYNC for plan in plans.values()):
            self.executors[ASYNC] = EventLoopExecutor(
                spec.async_slots,
                first,
                self.attempts,
                page,
                self._kick,
                spec.prefetch,
                self.forks,
            )
        listening = Connection(self.client, timeout=None)
        self.connections = (self.connection, listening)
        self.listener = WakeListener(listening)
        self.dispatcher = Dispatcher(
            spec,
            self.subscriptions,
            self.executors,
            self.attempts,
            self.listener,
            self.slot,
            self._rejoin,
            self._enter_late,
        )
        self.standby = StandbyThread(self.dispatcher, self.slot, page, self._overdue)
        self.main = MainThreadExecutor(
            self.slot,
            self.attempts,
            page,
            self.standby.watch,
            self.dispatcher.divert,
            self.forks,
            self.dispatcher.ack_early,
        )
        self._patient = False
        self._limits = task_limits(plans, spec)
        self.recycling = Recycling(spec.max_jobs, spec.max_rss)

    # -- life --------------------------------------------------------------------------------------

    def run(self) -> int:
        """Join, work, leave."""
        self.forks.watch()
        self.standby.start()
        while not self.stop.level and not self._join():
            self.stop.pause(self.dispatcher.outage.waiting)
        if not self.stop.level:
            self.page.set_phase(READY)
        log.debug("worker %s serves %s", self.base, ", ".join(self.spec.queues))
        turn, stop, recycling = self._turn, self.stop, self.recycling
        while not stop.level:
            turn()
            if recycling.active and recycling.due(self.page.done):
                log.info("worker %s leaves: %s", self.base, self.recycling.reason)
                break
        return self._leave()

    def _turn(self) -> None:
        """Run a batch of one queue, or else wait for something to do."""
        dispatcher = self.dispatcher
        if dispatcher.outage.since:
            self._wait_out()
            return
        subscription = dispatcher.polling.next()
        if subscription is not None:
            self.main.run(subscription)
            if subscription.todo:
                dispatcher.post(subscription)
            else:
                dispatcher.step(subscription)
            if len(self.subscriptions) > 1:
                self._look_around(subscription)
            return
        dispatcher.kicked = False
        if dispatcher.isolation.watching and dispatcher.isolate():
            return
        if self._look_around(None):
            return
        if not dispatcher.wait(dispatcher.rest(monotonic()), self.stop.fd):
            self.stop.clear()
            self.stop.look()

    def _look_around(self, but: Subscription | None) -> bool:
        """Settle and pull wherever there is reason to; whether there was."""
        worked = False
        now = monotonic()
        for subscription in self.subscriptions:
            if (
                subscription is not but
                and not self.dispatcher.outage.since
                and self.dispatcher.wants(subscription, now)
            ):
                self.dispatcher.step(subscription)
                worked = True
        return worked

    def _wait_out(self) -> None:
        """Redis is gone. The jobs that are held may run while the lease is sure to last."""
        dispatcher = self.dispatcher
        subscription = dispatcher.polling.next()
        sure = self.spec.settings.lease_ms / 3000
        if any(one.settle_first for one in self.subscriptions):
            subscription = None
        if subscription is not None and monotonic() - dispatcher.outage.since < sure:
            self.main.run(subscription)
        elif dispatcher.outage.waiting:
            self.stop.pause(dispatcher.outage.waiting)
        if not dispatcher.outage.waiting:
            for subscription in self.subscriptions:
                subscription.doubtful = True
            for subscription in self.subscriptions:
                dispatcher.step(subscription)
                if dispatcher.outage.waiting:
                    break

    # -- registration ------------------------------------------------------------------------------

    def _join(self) -> bool:
        """Register in all queues; False while Redis is gone."""
        return self.dispatcher.guarded(self._enter)

    def _enter(self) -> None:
        self._register()
        for subscription in self.subscriptions:
            try:
                if subscription.term:
                    self._prepare(subscription)
            except QueueDamaged as error:
                self.dispatcher.leave_alone(error)
        self.dispatcher.outage.over()

    def _enter_late(self, subscription: Subscription) -> None:
        """Register in a queue that was damaged when the others were joined."""
        self._register_in(subscription, consumer_of(self.base, self.page.rejoins))
        self._prepare(subscription)

    def _slots(self) -> int:
        """Jobs that can run here at once: without async tasks their slots run nothing."""
        return max(1, self.spec.threads) + (self.spec.async_slots if ASYNC in self.executors else 0)

    def _register(self) -> None:
        for tries in range(5):
            name = consumer_of(self.base, self.page.rejoins)
            try:
                for subscription in self.subscriptions:
                    if not subscription.term:
                        try:
                            self._register_in(subscription, name)
                        except QueueDamaged as error:
                            self.dispatcher.leave_alone(error)
                return
            except ScriptError as error:
                if "EXISTS" not in error.reply or tries == 4:
                    raise
                # of an earlier try whose reply was lost, and whose lease has ended meanwhile
                self._drop_all()
                self.page.rejoined()

    def _register_in(self, subscription: Subscription, name: str) -> None:
        subscription.register(
            name,
            priority=self.spec.priority,
            lease_ms=self.spec.settings.lease_ms,
            slots=self._slots(),
            limits=self._limits,
            jobs=max(1, self.dispatcher.window(subscription, False)),
            select=self.spec.select,
        )
        self.dispatcher.listen(subscription)

    def _prepare(self, subscription: Subscription) -> None:
        """Learn the queue's options; jobs that were parked for the lack of a task come back."""
        counts = self.connection.run(
            commands.counts(subscription.keys, oldest=False), queue=subscription.queue
        )
        subscription.most = int(counts.meta.get("max_deliveries", "10"))
        cursor = "0"
        while self.plans:
            cursor, _ = self.connection.run(
                commands.unpark(subscription.keys, cursor, list(self.plans))
            )
            if cursor == "0":
                break

    def _rejoin(self) -> None:
        """A registration was lost, because the lease ended. All queues are joined anew: the
        supervisor knows one name for all of them. Where that was under way when a reply was lost,
        it goes on under the same name: a consumer that is registered already learns so."""
        if all(subscription.term for subscription in self.subscriptions):
            worker_connection.loses()
            self._drop_all()
            self.page.rejoined()
        self._register()
        worker_connection.works()

    def _drop_all(self) -> None:
        stale = 0
        # before the call to Redis, which may be gone: others begin them then
        self.dispatcher.release_unstarted()
        for subscription in self.subscriptions:
            if subscription.term:
                try:
                    subscription.settle(None)
                    subscription.unregister()
                except RegistrationLost:
                    log.debug("queue %s: this registration is lost too", subscription.queue)
                except QueueDamaged as error:
                    self.dispatcher.leave_alone(error)
                self.dispatcher.unlisten(subscription)
            subscription.doomed |= self.dispatcher.running_in(subscription)
            stale += subscription.give_up()
        if stale:
            warn_late(stale)

    # -- leaving -----------------------------------------------------------------------------------

    def _leave(self) -> int:
        """Give back what has not begun, let run what has until the deadline, leave the queues."""
        dispatcher, stop = self.dispatcher, self.stop
        if stop.level:
            self.page.set_phase(DRAINING)
        else:
            self.page.set_phase(LEAVING)
            stop.ask(DRAIN)
        self._announce()
        while True:
            dispatcher.kicked = False
            for subscription in self.subscriptions:
                if (
                    subscription.term
                    and (subscription.pending or subscription.flight)
                    and not dispatcher.outage.waiting
                    and not subscription.damage.waiting
                ):
                    dispatcher.step(subscription)
            pending = any(one.pending and not one.damage.since for one in self.subscriptions)
            if not dispatcher.running and not pending:
                break
            left = self._time_left()
            if left <= 0 or stop.level == STOP:
                break
            if dispatcher.outage.waiting:
                left = min(left, dispatcher.outage.waiting)
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
        left = self.stop.deadline - now
        gone = self.dispatcher.outage.since
        untold = self._untold()
        if not gone or not untold or self.dispatcher.running:
            return left
        left = max(left, gone + self.spec.settings.lease_ms / 1000 - now)
        if not self._patient:
            self._patient = True
            self.page.set_phase(WAITING)
            log.warning(
                "%s to be reported, and Redis is gone: leaving waits for it, at most %.1f s",
                many(untold, "outcome"),
                max(0.0, left),
            )
        return left

    def _untold(self) -> int:
        return sum(len(subscription.untold) for subscription in self.subscriptions)

    def _announce(self, job: Now | None = None) -> None:
        """Nothing new is begun; running jobs learn of it."""
        self.dispatcher.closing = True
        self.slot.stop()
        for executor in self.executors.values():
            executor.stopping = True
            for running in list(executor.running.values()):
                if running.context is not None:
                    running.context.stopping = True
        self._release_unstarted(job)
        for subscription in self.subscriptions:
            if subscription.term and subscription.state != "not_interested":
                self.dispatcher.step(subscription, job)

    def _release_unstarted(self, job: Now | None = None) -> None:
        """Everything unstarted goes back."""
        # asked to leave before it had joined, it has nothing to listen to
        if not self.dispatcher.outage.since and any(
            subscription.term for subscription in self.subscriptions
        ):
            self.dispatcher.guarded(self.dispatcher.land, job=job)
            self.dispatcher.guarded(self.dispatcher.poll, job=job)
        with self.dispatcher.lock:
            if job is not None and self.slot.job is not job:
                return
            self.dispatcher.release_unstarted()
        for subscription in self.subscriptions:
            if (
                subscription.term
                and subscription.pending
                and not self.dispatcher.outage.waiting
                and not subscription.damage.waiting
            ):
                self.dispatcher.step(subscription, job)

    def _part(self) -> int:
        """Leave the queues: what still runs goes back uncounted, its outcome changes nothing."""
        unfinished = self.dispatcher.running + (1 if self.slot.job is not None else 0)
        lost = self._untold()
        try:
            try:
                self.dispatcher.land()
            except QueueDamaged as error:
                self.dispatcher.leave_alone(error)
            for subscription in self.subscriptions:
                try:
                    subscription.unregister()
                except QueueDamaged as error:
                    self.dispatcher.leave_alone(error)
        except RegistrationLost as error:
            log.warning("%s", error)
        except ServerError as error:
            log.warning("could not leave in order, the lease will end: %s", error)
        if unfinished:
            log.warning("released %s that still ran", many(unfinished, "job"))
        if lost:
            log.warning(
                "%s could not be reported: %s; where the lease ends first, %s again",
                many(lost, "outcome"),
                "Redis is gone" if self.dispatcher.outage.since else "their queue is damaged",
                "that job runs" if lost == 1 else "those jobs run",
            )
        if not unfinished:
            for executor in self.executors.values():
                executor.close()
            self.standby.close()
            self.listener.close()
            self.connection.close()
        log.debug("worker %s left", self.base)
        return Exit.UNFINISHED if unfinished or lost else Exit.OK

    def accuse(self) -> None:
        """A job has closed the worker's descriptors. The one that ended last is named on the page
        as if it still ran, so that it is the one that is charged."""
        ended = [
            (subscription, row)
            for subscription in self.subscriptions
            for row in subscription.untold
        ]
        if not ended:
            log.error("a job closed file descriptors of the worker: it ends")
            return
        subscription, row = max(ended, key=lambda one: one[1][6])
        log.error(
            "job %s of %s closed file descriptors of the worker: it ends", text(row[0]), row[3]
        )
        self.page.start(0, subscription.index, row[0], row[5], 0.0, row[4])

    # -- news from others
    # ---------------------------------------------------------------------------

    def _kick(self) -> None:
        """An executor has news: the thread at the dispatcher is to look."""
        if not self.dispatcher.kicked:
            self.dispatcher.kicked = True
            if self.slot.busy:
                self.standby.poke()
            else:
                self.stop.wake()

    def _strip(self) -> None:
        """In a child that a job forked: it begins no other job, and has no part in the worker's
        connections. They are closed here and go on there."""
        for subscription in self.subscriptions:
            subscription.todo.clear()
        for executor in self.executors.values():
            executor.strip()
        for connection in self.connections:
            if connection.socket is not None:
                connection.socket.close()

    def _overdue(self, job: Now) -> None:
        """By the stand-by thread, while the main thread is in a long job: drain, and at the
        deadline end the process under it."""
        self.stop.look()
        if not self.stop.level:
            return
        if not self.dispatcher.closing:
            self.page.set_phase(DRAINING)
            self._announce(job)
        if self.stop.level == STOP or monotonic() >= self.stop.deadline:
            with self.dispatcher.lock:
                if self.slot.job is not job:
                    return
                code = self._part()
            os._exit(code)
