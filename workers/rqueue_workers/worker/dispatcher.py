"""The dispatcher: settles what ended, pulls what there is room for, deals it out to the executors.

The main thread works at it between jobs; while a job of its own runs long, the stand-by thread
does. One lock is taken for each batch, none for a job.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic

from rqueue.errors import (
    CommandRefused,
    ConnectionLost,
    QueueDamaged,
    RedisTimeout,
    RegistrationLost,
    ServerError,
)
from rqueue.logs import logger
from rqueue.model.job import Delivery, has_crashed
from rqueue.model.job_order import came_back, overtakers
from rqueue.protocol.wake import Wake, delivered_job
from rqueue.transport.wake_listener import WakeListener
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.worker.attempt import Attempts, Decoded, Unfit
from rqueue_workers.worker.executors.base import Executor, Job
from rqueue_workers.worker.executors.main_thread import CurrentJob, Now
from rqueue_workers.worker.executors.threads import ThreadExecutor
from rqueue_workers.worker.isolation import Isolation
from rqueue_workers.worker.outage import Outage
from rqueue_workers.worker.queue_polling import QueuePolling
from rqueue_workers.worker.subscription import CHUNK, Subscription, Unstarted
from rqueue_workers.worker.task_kind import TaskKinds
from rqueue_workers.worker.task_plans import ASYNC, MAIN, THREAD

log = logger("rqueue.worker")

LINGER_S = 0.002
"""Seconds that ended jobs of busy executors wait for company, to be settled together."""

_MAIN_ALONE = {MAIN}

POLL_S = 0.004
"""Seconds between looks at the wake lists while there is work anyway."""


class Dispatcher:
    """All that the main thread and the stand-by thread share.

    rejoin: what to do when a subscription has lost its registration; enter: when one has none yet,
    because its queue was damaged. Both are called with the lock held.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        subscriptions: Sequence[Subscription],
        executors: dict[int, Executor],
        attempts: Attempts,
        listener: WakeListener,
        slot: CurrentJob,
        rejoin: Callable[[], None],
        enter: Callable[[Subscription], None],
    ) -> None:
        self.spec = spec
        self.subscriptions = list(subscriptions)
        self.executors = executors
        self.lock = Lock()
        self.outage = Outage()
        self.polling = QueuePolling(subscriptions, spec.strict)
        self.closing = False
        """No more jobs are pulled."""
        self.kicked = False
        self.slot = slot
        self.isolation = Isolation(subscriptions, executors, slot, self.divert)
        self._listener = listener
        self._by_name: dict[str, Subscription] = {}
        self._attempts = attempts
        self._rejoin = rejoin
        self._enter = enter
        self._sorter = TaskKinds(attempts.plans.values())
        self._threaded = THREAD in executors
        self._strict = spec.strict
        self._prefetch = spec.prefetch
        self._flying: Subscription | None = None
        self._poll_at = 0.0

    # -- one step ----------------------------------------------------------------------------------

    def guarded(
        self, action: Callable[..., None], *arguments: object, job: Now | None = None
    ) -> bool:
        """Do something under the lock; an outage is noted, a lost registration made good. Whether
        Redis could be used.

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
                    self._rejoin()
            except QueueDamaged as error:
                self.leave_alone(error)
            except ServerError as error:
                self.outage.note(error)
                return False
            return True

    def leave_alone(self, error: QueueDamaged) -> None:
        """A key of one queue is damaged: the others go on."""
        for subscription in self.subscriptions:
            if subscription.queue == error.queue:
                subscription.damage.note(error)
                subscription.doubtful = True  # the step may be half done

    def step(self, subscription: Subscription, job: Now | None = None) -> None:
        """Settle what ended in a subscription and pull. job: see `guarded`; the main thread is in
        it."""
        self.guarded(self._step, subscription, job is not None, job=job)

    def _step(self, subscription: Subscription, blocked: bool) -> None:
        if self._flying is not None:
            self.land()
        if subscription.damage.since:
            self._return_to(subscription)
        if subscription.doubtful:
            self._recover(subscription, blocked)
        elif subscription.passing and self._passed_on(subscription):
            pass  # the others first
        else:
            self._take_in(
                subscription, subscription.settle(self.window(subscription, blocked)), blocked
            )
        if self.outage.since:
            self.outage.over()
        subscription.damage.over(subscription.queue)
        self.poll()  # last: a client may wait for an outcome that was settled

    def _return_to(self, subscription: Subscription) -> None:
        """Ask a queue again that was damaged."""
        if not subscription.term:
            self._enter(subscription)
        elif self._label(subscription) not in self._by_name:
            self.listen(subscription)
        else:
            return
        self._ask_anew(subscription)

    def _ask_anew(self, but: Subscription) -> None:
        """What is listened to has changed: a wake-up of another one may be lost just then."""
        for subscription in self.subscriptions:
            if subscription is not but and subscription.term:
                subscription.doubtful = True

    def post(self, subscription: Subscription) -> None:
        """`step` for a subscription that has more to run: its jobs run meanwhile, and the reply is
        read at the dispatcher's next step."""
        self.guarded(self._post, subscription)

    def _post(self, subscription: Subscription) -> None:
        self.land()
        if (
            subscription.doubtful
            or subscription.passing
            or subscription.settle_first
            or subscription.pending > CHUNK
            or self.closing
        ):
            self._step(subscription, False)
            return
        subscription.send(self.window(subscription, False))
        self._flying = subscription
        self.poll()

    def clear(self, subscription: Subscription) -> None:
        """The main thread is in a long job: its other jobs are to go back. Raises the server
        errors."""
        # what is under way comes behind what is here: apart from each other they would overtake
        self.land()
        if subscription.release_unstarted():
            # other executors may still have room, but not for these: look again later
            subscription.hold(monotonic())

    def land(self) -> None:
        """Read the reply that is under way, if one is. Raises the server errors."""
        subscription = self._flying
        if subscription is not None:
            self._flying = None
            self._take_in(subscription, subscription.receive(), False)

    def _passed_on(self, subscription: Subscription) -> bool:
        subscription.pass_on()
        return subscription.state == "interested"

    def window(self, subscription: Subscription, blocked: bool) -> int:
        """Jobs that a subscription may hold after this step, all in all."""
        staying = len(subscription.unsettled) - subscription.pending
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
        if seen != _MAIN_ALONE:
            room += self._room_beside(subscription, blocked)
        if self._prefetch and room > self._prefetch - staying:
            room = max(0, self._prefetch - staying)
        if isolation.wary:
            room = min(room, 1)
        return staying + room

    def _room_beside(self, subscription: Subscription, blocked: bool) -> int:
        """Jobs of this subscription that the executors have room for."""
        room = 0
        if monotonic() >= subscription.hold_until or not (
            blocked or any(executor.blocked for executor in self.executors.values())
        ):
            for kind, executor in self.executors.items():
                if kind in subscription.executors or (
                    kind == THREAD and not subscription.executors
                ):
                    room += executor.room
        return room

    def wants(self, subscription: Subscription, now: float, blocked: bool = False) -> bool:
        """Whether there is something to tell or to ask for."""
        if subscription.damage.since:
            return now >= subscription.damage.retry_at
        if subscription.doubtful or subscription.flight is not None:
            return True
        if subscription.pending and not self._lingers(subscription, now):
            return True
        if self.closing:
            return False
        state = subscription.state
        if state == "notified" or 0.0 < subscription.timer_at <= now:
            return True
        window = self.window(subscription, blocked)
        if window <= subscription.held:
            apart = self.isolation.active or self.isolation.aloof
            return (blocked or apart) and state == "interested"
        return state == "not_interested" and not subscription.tight

    def _lingers(self, subscription: Subscription, now: float) -> bool:
        if not self.executors or self.closing:
            return False
        if (
            subscription.others
            or subscription.back
            or subscription.passing
            or subscription.dones
            or not subscription.acks
        ):
            return False
        if not any(executor.todo for executor in self.executors.values()):
            return False
        finished: float = subscription.acks[0][6]
        return now < finished + LINGER_S and len(subscription.acks) < 100

    # -- jobs in -----------------------------------------------------------------------------------

    def deal(self, subscription: Subscription, jobs: Sequence[bytes], acquired: int) -> None:
        """Put jobs, [id, value, ...], where they will run. acquired: ms, Redis's clock."""
        if self.closing or subscription.back or self.isolation.active:
            # an executor would begin them at once, and before those that are about to go back
            subscription.back.extend((jobs[i], jobs[i + 1]) for i in range(0, len(jobs), 2))
            return
        if not self.executors:
            subscription.add(jobs, acquired)
            return
        for i in range(0, len(jobs), 2):
            id_, value = jobs[i], jobs[i + 1]
            if has_crashed(value):
                # one that cannot run here waits for nobody
                if self._decode(subscription, id_, value, acquired) is None:
                    continue
                if self.isolation.admit(subscription, (id_, value, acquired)):
                    self.deal(subscription, jobs[i + 2 :], acquired)
                    return
                continue
            self.isolation.wary = False
            if self._threaded or self._sorter.is_async(value):
                self.divert(subscription, id_, value, acquired)
            else:
                subscription.executors.add(MAIN)
                subscription.todo.append((id_, value, acquired))

    def isolate(self, job: Now | None = None) -> bool:
        """See to the job that is to run alone; whether anything changed. job: see `guarded`."""
        with self.lock:
            if job is not None and self.slot.job is not job:
                return False
            return self.isolation.advance(monotonic())

    def divert(self, subscription: Subscription, id: bytes, value: bytes, acquired: int) -> None:
        """Give one job to the executor it belongs to."""
        decoded = self._decode(subscription, id, value, acquired)
        if decoded is None:
            return
        head, plan, args, kwargs, opts = decoded
        if plan.executor == MAIN:
            subscription.todo.append((id, value, acquired))
            return
        subscription.executors.add(plan.executor)
        job = Job(subscription, id, value, acquired, head, plan, args, kwargs, opts)
        self.executors[plan.executor].submit((job,))

    def _decode(
        self, subscription: Subscription, id: bytes, value: bytes, acquired: int
    ) -> Decoded | None:
        """A job as it can run; None where it cannot, and goes its way."""
        now = monotonic()
        try:
            return self._attempts.decode(
                subscription.queue,
                subscription.most,
                id,
                value,
                acquired,
                now,
                subscription.ms(now),
            )
        except Unfit as unfit:
            subscription.unfit(id, value, unfit.row)
            return None

    # -- wake-ups ----------------------------------------------------------------------------------

    def listen(self, subscription: Subscription) -> None:
        """Listen for a subscription that was registered."""
        label = self._label(subscription)
        self._by_name[label] = subscription
        self._listener.add(label, subscription.keys.wake(subscription.name))

    def unlisten(self, subscription: Subscription) -> None:
        """Hear no more of it."""
        self._by_name.pop(self._label(subscription), None)
        self._listener.remove(subscription.keys.wake(subscription.name))

    @staticmethod
    def _label(subscription: Subscription) -> str:
        return f"{subscription.name} {subscription.queue}"  # the name is the same in all queues

    def poll(self) -> None:
        """Hear what came meanwhile, if it was not looked for just now. Raises the server errors."""
        now = monotonic()
        if now < self._poll_at or not self._by_name:
            return
        self._poll_at = now + POLL_S
        for wake in self._listen(0):
            self.hear(wake)

    def _listen(self, timeout: float | None, interrupt: int | None = None) -> list[Wake]:
        try:
            return self._listener.wait(timeout, interrupt)
        except (ConnectionLost, RedisTimeout):
            # a connection that died unnoticed says so when it is used: only a fresh one can tell
            # whether Redis is gone
            return self._listener.wait(0)
        except CommandRefused:
            self._find_damaged_wake()
            raise

    def _find_damaged_wake(self) -> None:
        """One command waits for the wake-ups of all queues: where the list of one is of another
        type, it is left out. Raises QueueDamaged then."""
        for subscription in list(self._by_name.values()):
            try:
                subscription.check_wake()
            except QueueDamaged:
                self.unlisten(subscription)
                self._ask_anew(subscription)
                raise

    def hear(self, wake: Wake) -> None:
        """Act on a wake-up."""
        subscription = self._by_name.get(wake.consumer)
        if subscription is None:
            return
        job = delivered_job(wake.element)
        if job is not None:
            if not subscription.delivered(*job):
                return
            if subscription.flight is not None or subscription.doubtful or subscription.held_up:
                subscription.aside += job  # a reply that is not read yet may stand before it
            elif subscription.released:
                subscription.back.append(job)
            else:
                self.deal(subscription, job, subscription.ms(monotonic()))
        elif wake.kind == "revoked":
            subscription.drop(wake.id.encode())
            self._revoke(subscription, wake.id.encode())
        elif wake.kind == "reconnected":
            subscription.reconnected()
        else:
            subscription.notified()

    def _revoke(self, subscription: Subscription, id: bytes) -> None:
        if self.isolation.take(subscription, id):
            return
        for entry in list(subscription.todo):
            if entry[0] == id:
                try:
                    subscription.todo.remove(entry)
                    return
                except ValueError:
                    break  # it has just begun
        for executor in self.executors.values():
            for job in list(executor.todo):
                if job.subscription is subscription and job.id == id:
                    job.cancelled = True
                    try:
                        executor.todo.remove(job)
                        return
                    except ValueError:
                        break
            for job in list(executor.running.values()):
                if job.subscription is subscription and job.id == id:
                    executor.revoke(job)
                    return
        subscription.cancelled.add(id)
        self.slot.revoke(subscription, id)

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
                for wake in self._listen(0):
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

    def _deal_in_order(self, subscription: Subscription, taken: list[Unstarted]) -> None:
        """Deal jobs, in the order of taking. One that was delivered before an earlier one came
        back goes back itself: others may wait between the two (Q-01)."""
        early = overtakers([Delivery(id_, value) for id_, value, _ in taken])
        for id_, value, acquired in taken:
            if id_.decode() not in early:
                self.deal(subscription, (id_, value), acquired)
        back = [(id_, value) for id_, value, _ in taken if id_.decode() in early]
        subscription.back.extend(back)

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

    def release_unstarted(self) -> None:
        """What has not begun is to go back, wherever it waits. With the lock held."""
        for executor in self.executors.values():
            executor.release_unstarted()
        for subscription in self.subscriptions:
            subscription.release_unstarted()
            taken = self.isolation.take(subscription)
            subscription.back.extend((id_, value) for id_, value, _ in taken)

    def _take_unstarted(self, subscription: Subscription) -> list[Unstarted]:
        jobs = []
        while subscription.todo:
            try:
                jobs.append(subscription.todo.popleft())
            except IndexError:
                break  # the main thread was faster
        for executor in self.executors.values():
            waiting = executor.take_unstarted()
            jobs += [
                (job.id, job.value, job.acquired)
                for job in waiting
                if job.subscription is subscription
            ]
            executor.submit([job for job in waiting if job.subscription is not subscription])
        return jobs + self.isolation.take(subscription)

    def running_in(self, subscription: Subscription) -> set[bytes]:
        """Ids of a subscription's jobs that run."""
        ids = set()
        running = self.slot.job
        if running is not None and running[0] is subscription:
            ids.add(running[1])
        for executor in self.executors.values():
            ids |= {
                job.id
                for job in list(executor.running.values())
                if job.subscription is subscription
            }
        return ids

    # -- waiting -----------------------------------------------------------------------------------

    def rest(self, now: float) -> float | None:
        """Seconds until something has to be looked at without a wake-up; None = nothing has."""
        times = [
            subscription.timer_at - now
            for subscription in self.subscriptions
            if subscription.timer_at and not subscription.damage.since
        ]
        for subscription in self.subscriptions:
            if subscription.damage.since:
                times.append(subscription.damage.retry_at - now)
                continue
            if subscription.hold_until > now and self.executors:
                times.append(subscription.hold_until - now)
            if subscription.pending and subscription.acks:
                times.append(subscription.acks[0][6] + LINGER_S - now)
        if not self.closing and (until := self.isolation.until):
            times.append(until - now)
        for executor in self.executors.values():
            again, released = executor.stall(now)
            if again:
                times.append(again)
            for subscription in released:
                subscription.hold(now)
            if isinstance(executor, ThreadExecutor) and (again := executor.limits(now)):
                times.append(again)
        if any(one.back and not one.damage.since for one in self.subscriptions):
            return 0.0
        return max(0.0, min(times)) if times else None

    def wait(self, timeout: float | None, interrupt: int) -> bool:
        """Wait for a wake-up, or for `interrupt` to become readable; True if there was the one."""
        if not self._by_name:  # all queues are damaged
            select.select([interrupt], (), (), timeout)
            return False
        try:
            wakes = self._listen(timeout, interrupt)
        except QueueDamaged as error:
            self.leave_alone(error)
            return True
        except ServerError as error:
            self.outage.note(error)
            return False
        if wakes:
            with self.lock:
                for wake in wakes:
                    self.hear(wake)
        return bool(wakes)

    @property
    def running(self) -> int:
        """Jobs that run in executors."""
        return sum(len(executor.running) for executor in self.executors.values())

    @property
    def async_executor(self) -> Executor | None:
        """The event loop's executor, if there is one."""
        return self.executors.get(ASYNC)
