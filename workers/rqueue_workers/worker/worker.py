"""A worker process: joins its queues, runs their jobs, leaves in order.

`run` is what the supervisor calls in the forked child. Between jobs the main thread settles and
pulls in one call; while one of its jobs runs long the courier does it
(`rqueue_workers.worker.standby_thread`); threads and the event loop run jobs beside it.
"""

from __future__ import annotations

import os
from time import monotonic

from rqueue.errors import RegistrationLost, ScriptError, ServerError, UnusableServer
from rqueue.logs import logger
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.task import registry
from rqueue.text.numbers import many
from rqueue.transport.connection import Wire
from rqueue.transport.redis_client import open_client
from rqueue.transport.wake_listener import Listener
from rqueue_workers.exit_codes import Exit
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import (
    DRAIN,
    DRAINING,
    LEAVING,
    READY,
    STOP,
    WAITING,
    Shared,
    consumer_of,
)
from rqueue_workers.worker.app_import import AppError, doubts
from rqueue_workers.worker.attempt import Executor, text
from rqueue_workers.worker.dispatcher import Desk
from rqueue_workers.worker.executors.base import Lane
from rqueue_workers.worker.executors.event_loop import AsyncLane
from rqueue_workers.worker.executors.main_thread import MainLane, Now, Slot
from rqueue_workers.worker.executors.threads import ThreadLane
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.outage import DescriptorsClosed, is_closed
from rqueue_workers.worker.recycling import Recycling
from rqueue_workers.worker.shutdown import Stop
from rqueue_workers.worker.standby_thread import Courier
from rqueue_workers.worker.subscription import Hand, warn_late
from rqueue_workers.worker.task_plans import ASYNC, THREAD, Plan, load_plans, task_limits

log = logger("rqueue.worker")


def run(spec: WorkerSpec, shared: Shared, base: str, parent_pid: int) -> int:
    """Be a worker process until it is told to leave; returns its exit code (see `exits`).

    base: the worker's name, the first part of its consumers' names. parent_pid: of the supervisor,
    0 = there is none. The caller ends the process with the code: threads may still be in jobs.
    """
    stop = Stop(shared, spec.drain, parent_pid)
    stop.install()
    try:
        try:
            plans = load_plans(spec)
            shared.words = "\n".join(doubts(spec.app, spec.queues, registry))
        except AppError as error:
            shared.words = str(error)  # the supervisor logs it, once for all its workers
            return Exit.APP
        child = Child(spec, shared, base, plans, stop)
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
        shared.words = str(error)
        return Exit.REDIS
    except Exception:
        shared.blame_us()
        log.exception("the worker fails: a bug in rqueue, or data that it did not write")
        return Exit.INTERNAL
    finally:
        stop.uninstall()


class Child:
    """One worker process."""

    def __init__(
        self, spec: WorkerSpec, shared: Shared, base: str, plans: dict[str, Plan], stop: Stop
    ) -> None:
        self.spec = spec
        self.shared = shared
        self.base = base
        self.plans = plans
        self.stop = stop
        settings = spec.settings
        self.client = open_client(
            settings.url or "",
            socket_connect_timeout=settings.connect_timeout,
        )
        self.wire = Wire(self.client, timeout=settings.command_timeout)
        self.hands = [
            Hand(
                i,
                QueueKeys(queue, settings.namespace),
                self.wire,
                base,
                shared.add_done,
                spec.prefetch,
                spec.history_bodies,
                spec.history_labels,
            )
            for i, queue in enumerate(spec.queues)
        ]
        for hand in self.hands:
            hand.lanes = {plan.lane for plan in plans.values() if plan.queue == hand.queue}
        self.executor = Executor(spec, plans, base, settings.signer)
        self.slot = Slot(base)
        self.forks = Forks(self._strip)
        self.lanes: dict[int, Lane] = {}
        first = 1
        parts = (self.executor, shared, self._kick, spec.prefetch, self.forks)
        if spec.threads:
            self.lanes[THREAD] = ThreadLane(spec.threads, 0, *parts)
            first = spec.threads
        if spec.async_slots and any(plan.lane == ASYNC for plan in plans.values()):
            self.lanes[ASYNC] = AsyncLane(
                spec.async_slots,
                first,
                self.executor,
                shared,
                self._kick,
                spec.prefetch,
                self.forks,
            )
        listening = Wire(self.client, timeout=None)
        self.wires = (self.wire, listening)
        self.listener = Listener(listening)
        self.desk = Desk(
            spec, self.hands, self.lanes, self.executor, self.listener, self.slot, self._rejoin
        )
        self.courier = Courier(self.desk, self.slot, shared, self._overdue)
        self.main = MainLane(
            self.slot,
            self.executor,
            shared,
            self.courier.watch,
            self.desk.divert,
            self.forks,
        )
        self._patient = False
        self._limits = task_limits(plans, spec)
        self.recycling = Recycling(spec.max_jobs, spec.max_rss)

    # -- life --------------------------------------------------------------------------------------

    def run(self) -> int:
        """Join, work, leave."""
        self.forks.watch()
        self.courier.start()
        while not self.stop.level and not self._join():
            self.stop.pause(self.desk.outage.waiting)
        if not self.stop.level:
            self.shared.set_phase(READY)
        log.debug("worker %s serves %s", self.base, ", ".join(self.spec.queues))
        turn, stop, recycling = self._turn, self.stop, self.recycling
        while not stop.level:
            turn()
            if recycling.active and recycling.due(self.shared.done):
                log.info("worker %s leaves: %s", self.base, self.recycling.reason)
                break
        return self._leave()

    def _turn(self) -> None:
        """Run a batch of one queue, or else wait for something to do."""
        desk = self.desk
        if desk.outage.since:
            self._wait_out()
            return
        hand = desk.turns.next()
        if hand is not None:
            self.main.run(hand)
            if hand.todo:
                desk.post(hand)
            else:
                desk.step(hand)
            if len(self.hands) > 1:
                self._look_around(hand)
            return
        desk.kicked = False
        if self._look_around(None):
            return
        if not desk.wait(desk.rest(monotonic()), self.stop.fd):
            self.stop.clear()
            self.stop.look()

    def _look_around(self, but: Hand | None) -> bool:
        """Settle and pull wherever there is reason to; whether there was."""
        worked = False
        now = monotonic()
        for hand in self.hands:
            if hand is not but and not self.desk.outage.since and self.desk.wants(hand, now):
                self.desk.step(hand)
                worked = True
        return worked

    def _wait_out(self) -> None:
        """Redis is gone. What is in hand may run while the lease is sure to last."""
        desk = self.desk
        hand = desk.turns.next()
        sure = self.spec.settings.lease_ms / 3000
        if hand is not None and monotonic() - desk.outage.since < sure:
            self.main.run(hand)
        elif desk.outage.waiting:
            self.stop.pause(desk.outage.waiting)
        if not desk.outage.waiting:
            for hand in self.hands:
                hand.lost_reply = True
            for hand in self.hands:
                desk.step(hand)
                if desk.outage.waiting:
                    break

    # -- registration ------------------------------------------------------------------------------

    def _join(self) -> bool:
        """Register in all queues; False while Redis is gone."""
        return self.desk.guarded(self._enter)

    def _enter(self) -> None:
        self._register()
        for hand in self.hands:
            self._prepare(hand)
        self.desk.outage.over()

    def _slots(self) -> int:
        """Jobs that can run here at once: without async tasks their slots run nothing."""
        return max(1, self.spec.threads) + (self.spec.async_slots if ASYNC in self.lanes else 0)

    def _register(self) -> None:
        for tries in range(5):
            name = consumer_of(self.base, self.shared.rejoins)
            try:
                for hand in self.hands:
                    if not hand.term:
                        hand.register(
                            name,
                            priority=self.spec.priority,
                            lease_ms=self.spec.settings.lease_ms,
                            slots=self._slots(),
                            limits=self._limits,
                            jobs=max(1, self.desk.window(hand, False)),
                        )
                        self.desk.listen(hand)
                return
            except ScriptError as error:
                if "EXISTS" not in error.reply or tries == 4:
                    raise
                # the reply of an earlier try was lost; that one leaves when its lease ends
                self._drop_all()
                self.shared.rejoined()

    def _prepare(self, hand: Hand) -> None:
        """Learn the queue's options; jobs that were parked for the lack of a task come back."""
        counts = self.wire.run(commands.counts(hand.keys, oldest=False), queue=hand.queue)
        hand.most = int(counts.meta.get("max_deliveries", "10"))
        cursor = "0"
        while self.plans:
            cursor, _ = self.wire.run(commands.unpark(hand.keys, cursor, list(self.plans)))
            if cursor == "0":
                break

    def _rejoin(self) -> None:
        """A registration was lost, because the lease ended. All queues are joined anew: the
        supervisor knows one name for all of them."""
        self._drop_all()
        self.shared.rejoined()
        self._register()

    def _drop_all(self) -> None:
        stale = 0
        for hand in self.hands:
            if hand.term:
                self.desk.unlisten(hand)
                try:
                    hand.settle(None)
                    hand.unregister()
                except RegistrationLost:
                    log.debug("queue %s: this registration is lost too", hand.queue)
            hand.doomed |= self.desk.running_in(hand)
            stale += hand.forget()
            for lane in self.lanes.values():
                for job in list(lane.todo):
                    if job.hand is hand:
                        job.cancelled = True
        for lane in self.lanes.values():
            lane.give_back()
        for hand in self.hands:
            hand.back.clear()
        if stale:
            warn_late(stale)

    # -- leaving -----------------------------------------------------------------------------------

    def _leave(self) -> int:
        """Give back what has not begun, let run what has until the deadline, leave the queues."""
        desk, stop = self.desk, self.stop
        if stop.level:
            self.shared.set_phase(DRAINING)
        else:
            self.shared.set_phase(LEAVING)
            stop.ask(DRAIN)
        self._announce()
        while True:
            desk.kicked = False
            for hand in self.hands:
                if hand.term and (hand.pending or hand.flight) and not desk.outage.waiting:
                    desk.step(hand)
            pending = any(hand.pending for hand in self.hands)
            if not desk.running and not pending:
                break
            left = self._time_left()
            if left <= 0 or stop.level == STOP:
                break
            if desk.outage.waiting:
                left = min(left, desk.outage.waiting)
            rest = desk.rest(monotonic())
            stop.pause(min(left, 0.2 if rest is None else max(0.005, min(rest, 0.2))))
            stop.look()
            self._give_back()  # what was handed over while it said good-bye
        return self._part()

    def _time_left(self) -> float:
        """Seconds until what is not done is left as it is: until the deadline of the drain. Where
        nothing runs any more and only Redis is missing, as long as the lease may hold: what ended
        would have to run again."""
        now = monotonic()
        left = self.stop.deadline - now
        gone = self.desk.outage.since
        untold = self._untold()
        if not gone or not untold or self.desk.running:
            return left
        left = max(left, gone + self.spec.settings.lease_ms / 1000 - now)
        if not self._patient:
            self._patient = True
            self.shared.set_phase(WAITING)
            log.warning(
                "%s to be told, and Redis is gone: leaving waits for it, at most %.1f s",
                many(untold, "outcome"),
                max(0.0, left),
            )
        return left

    def _untold(self) -> int:
        return sum(len(hand.untold) for hand in self.hands)

    def _announce(self, job: Now | None = None) -> None:
        """Nothing new is begun; who runs is told."""
        self.desk.closing = True
        self.slot.stop()
        for lane in self.lanes.values():
            lane.stopping = True
            for running in list(lane.running.values()):
                if running.context is not None:
                    running.context.stopping = True
        self._give_back(job)
        for hand in self.hands:
            if hand.term and hand.state != "not_interested":
                self.desk.step(hand, job)

    def _give_back(self, job: Now | None = None) -> None:
        """Everything unstarted goes back."""
        # told to leave before it had joined, it has nothing to listen to
        if not self.desk.outage.since and any(hand.term for hand in self.hands):
            self.desk.guarded(self.desk.land, job=job)
            self.desk.guarded(self.desk.poll, job=job)
        for lane in self.lanes.values():
            lane.give_back()
        for hand in self.hands:
            hand.give_back()
            if hand.term and hand.pending and not self.desk.outage.waiting:
                self.desk.step(hand, job)

    def _part(self) -> int:
        """Leave the queues: what still runs goes back uncounted, its outcome changes nothing."""
        unfinished = self.desk.running + (1 if self.slot.job is not None else 0)
        lost = self._untold()
        try:
            self.desk.land()
            for hand in self.hands:
                hand.unregister()
        except RegistrationLost as error:
            log.warning("%s", error)
        except ServerError as error:
            log.warning("could not leave in order, the lease will end: %s", error)
        if unfinished:
            log.warning("gave back %s that still ran", many(unfinished, "job"))
        if lost:
            log.warning(
                "%s could not be told: Redis is gone; where the lease ends first, %s again",
                many(lost, "outcome"),
                "that job runs" if lost == 1 else "those jobs run",
            )
        if not unfinished:
            for lane in self.lanes.values():
                lane.close()
            self.courier.close()
            self.listener.close()
            self.wire.close()
        log.debug("worker %s left", self.base)
        return Exit.UNFINISHED if unfinished or lost else Exit.OK

    def accuse(self) -> None:
        """A job has closed the worker's descriptors. The one that ended last is named on the page
        as if it still ran, so that it is the one that is charged."""
        ended = [(hand, row) for hand in self.hands for row in hand.untold]
        if not ended:
            log.error("a job closed file descriptors of the worker: it ends")
            return
        hand, row = max(ended, key=lambda one: one[1][6])
        log.error(
            "job %s of %s closed file descriptors of the worker: it ends", text(row[0]), row[3]
        )
        self.shared.start(0, hand.index, row[0], row[5], 0.0, row[4])

    # -- told by others ----------------------------------------------------------------------------

    def _kick(self) -> None:
        """A lane has news: whoever is at the desk is to look."""
        if not self.desk.kicked:
            self.desk.kicked = True
            if self.slot.busy:
                self.courier.poke()
            else:
                self.stop.wake()

    def _strip(self) -> None:
        """In a child that a job forked: it begins no other job, and has no part in the worker's
        connections. They are closed here and go on there."""
        for hand in self.hands:
            hand.todo.clear()
        for lane in self.lanes.values():
            lane.strip()
        for wire in self.wires:
            if wire.socket is not None:
                wire.socket.close()

    def _overdue(self, job: Now) -> None:
        """By the courier, while the main thread is in a long job: drain, and at the deadline end
        the process under it."""
        self.stop.look()
        if not self.stop.level:
            return
        if not self.desk.closing:
            self.shared.set_phase(DRAINING)
            self._announce(job)
        if self.stop.level == STOP or monotonic() >= self.stop.deadline:
            with self.desk.lock:
                if self.slot.job is not job:
                    return
                code = self._part()
            os._exit(code)
