"""Sync jobs in the main thread: the hot loop. What is not plain takes the long way round."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from types import FrameType
from typing import Any

from orjson import loads

from rqueue.errors import SoftTimeLimit
from rqueue.model.job import Delivery, delivered_before, has_crashed
from rqueue.tasks.context import JobContext, current
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import NOTHING, Attempts, Unfit
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.history_rows import Row
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import MAIN, Plan

SETTLE_S = 0.01
"""Seconds after which an ended job is settled, whatever else is held."""

BATCH = 512
NO_ARGUMENTS: list[Any] = []

Now = tuple[Subscription, bytes, bytes, str, Mapping[str, Any], float, int, float | None]
"""subscription, id, value, task, options, started, acquired, deadline of the job that runs."""


class CurrentJob:
    """The job in the main thread. Its context is made when the job asks for it."""

    def __init__(self, worker: str) -> None:
        self.job: Now | None = None
        self.busy = False
        """The main thread runs jobs, one after the other: the stand-by thread has to watch."""
        self.stopping = False
        self._worker = worker
        self._made: tuple[Now, JobContext] | None = None

    def context(self) -> JobContext | None:
        """The context of the job that runs."""
        job = self.job
        if job is None:
            return None
        made = self._made
        if made is not None and made[0] is job:
            return made[1]
        subscription, id_, value, task, opts, _, acquired, deadline = job
        context = JobContext(
            Delivery(id_, value), task, subscription.queue, opts, acquired, self._worker, deadline,
            partial(subscription.follow_ups.transaction, id_),
        )  # fmt: skip
        context.stopping = self.stopping
        context.cancelled = id_ in subscription.cancelled
        self._made = (job, context)
        return context

    def revoke(self, subscription: Subscription, id: bytes) -> None:
        """Tell the job that runs, if it is this one, that it was cancelled."""
        job, made = self.job, self._made
        if job is not None and job[0] is subscription and job[1] == id and made is not None:
            made[1].cancelled = True

    def stop(self) -> None:
        """Tell the job that runs, and later ones, that the worker is about to stop."""
        self.stopping = True
        if self._made is not None:
            self._made[1].stopping = True


class MainThreadExecutor:
    """Runs a subscription's jobs here and now.

    watch: wakes the stand-by thread up, if it sleeps. divert: takes a job of another executor.
    ack_early: acks a job before it begins, and says whether it may.
    forks: tells whether this is a child that a job forked; what such a one would run next was taken
    away.
    """

    def __init__(
        self,
        slot: CurrentJob,
        attempts: Attempts,
        page: StatusPage,
        watch: Callable[[], None],
        divert: Callable[[Subscription, bytes, bytes, int], None],
        forks: Forks,
        ack_early: Callable[[Subscription, Row], bool],
    ) -> None:
        self.slot = slot
        self._forks = forks
        self._attempts = attempts
        self._page = page
        self._watch = watch
        self._divert = divert
        self._ack_early = ack_early
        self._armed: Plan | None = None
        self._mark = page.marker(0)
        self._number = 1 << 32  # others count from 0: two in a row are never the same
        self._functions: dict[str, Any] = {}
        if attempts.signer is None:
            for plan in attempts.plans.values():
                if plan.plain and plan.executor == MAIN:
                    self._functions[plan.name] = plan.function
        self._alarms = threading.current_thread() is threading.main_thread()

    def run(self, subscription: Subscription) -> int:
        """Run jobs of `subscription` until none is left or the first of them has to be settled;
        returns how many ended. Their rows are in the subscription then."""
        slot = self.slot
        slot.busy = True
        self._watch()
        current.set(slot.context)
        popleft = subscription.todo.popleft
        ended = subscription.acks.append
        done = subscription.dones.append
        other = subscription.others.append
        functions = self._functions.get
        attempts = self._attempts
        index = subscription.index
        mark = self._mark
        number = self._number
        clock = monotonic
        forks = self._forks
        begun = started = clock()
        limit = begun + SETTLE_S
        count = 0
        while count < BATCH:
            try:
                id_, value, acquired = popleft()
            except IndexError:
                break
            head, _, body = value.partition(b";")
            again = head.count(b",") > 1
            if again and (count or subscription.pending) and has_crashed(value):
                # if it crashes once more, what ended before it shall not run again
                subscription.todo.appendleft((id_, value, acquired))
                subscription.settle_first = True
                break
            try:
                parts = loads(body)
                if len(parts) == 2:
                    name, args = parts
                else:
                    name = parts[0] if len(parts) == 1 and type(parts) is list else None
                    args = NO_ARGUMENTS
                function = functions(name)
            except (ValueError, TypeError):
                function = None
            if function is None or type(args) is not list:
                if self._long_way(subscription, id_, value, acquired):
                    count += 1
                started = clock()
                # it may be suspected of a death: one that ended well shall not be of the next
                if again and delivered_before(head):
                    subscription.settle_first = has_crashed(value)
                    break
                if started >= limit:
                    break
                continue
            slot.job = (subscription, id_, value, name, NOTHING, started, acquired, None)
            number += 1
            mark(number, id_, started, 0.0, acquired, index, len(id_), number)
            try:
                result = function(*args)
            except BaseException as error:
                if forks.child:
                    forks.leave(error)
                finished = clock()
                other(
                    attempts.failed(
                        id_, value, head, attempts.plans[name], acquired, started, finished, error,
                        subscription.ms(finished), subscription.most,
                    )
                )  # fmt: skip
            else:
                finished = clock()
                if result is None:
                    ended((id_, value, head, name, acquired, started, finished))
                else:
                    if forks.child:
                        break
                    row = attempts.returned(
                        id_, value, head, attempts.plans[name], acquired, started, finished, result,
                        subscription.ms(finished),
                    )  # fmt: skip
                    (done if len(row) == 9 else other)(row)
            count += 1
            started = finished
            # as above
            if again and delivered_before(head):
                subscription.settle_first = has_crashed(value)
                break
            if finished >= limit:
                break
        if forks.child:
            forks.leave()
        slot.job = None
        slot.busy = False
        self._number = number
        self._page.finish(0)
        if count:
            subscription.prefetch.sample(count, started - begun)
        return count

    def _long_way(self, subscription: Subscription, id: bytes, value: bytes, acquired: int) -> bool:
        """One job with limits, options, keywords or a signature, or that cannot run at all. Returns
        whether it ended here."""
        slot, attempts = self.slot, self._attempts
        started = monotonic()
        try:
            head, plan, args, kwargs, opts = attempts.decode(
                subscription.queue,
                subscription.most,
                id,
                value,
                acquired,
                started,
                subscription.ms(started),
            )
        except Unfit as unfit:
            subscription.unfit(id, value, unfit.row)
            return False
        if plan.executor != MAIN:
            self._divert(subscription, id, value, acquired)
            return False
        if plan.early:
            row = (id, value, head, plan.name, acquired, started, started)
            if not self._ack_early(subscription, row):
                return False
            started = monotonic()
        allowed = plan.soft or plan.limit
        deadline = started + plan.limit if plan.limit else 0.0
        slot.job = (
            subscription, id, value, plan.name, opts, started, acquired,
            started + allowed if allowed else None,
        )  # fmt: skip
        self._page.start(0, subscription.index, id, started, deadline, acquired)
        error: BaseException | None = None
        result: Any = None
        try:
            if plan.soft and self._alarms:
                result = self._limited(plan, args, kwargs)
            else:
                result = plan.function(*args, **kwargs)
        except BaseException as raised:
            error = raised
        if self._forks.child:
            self._forks.leave(error)
        finished = monotonic()
        row = (id, value, head, plan.name, acquired, started, finished)
        if plan.early:
            if error is not None:
                attempts.lost(id, plan, error)
        elif error is not None:
            subscription.others.append(
                attempts.failed(
                    *row[:3], plan, *row[4:], error, subscription.ms(finished), subscription.most
                )
            )
        elif result is None:
            subscription.acks.append(row)
        else:
            row = attempts.returned(*row[:3], plan, *row[4:], result, subscription.ms(finished))
            (subscription.dones if len(row) == 9 else subscription.others).append(row)
        return True

    def _limited(self, plan: Plan, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call with a soft limit: an alarm that raises in this thread."""
        # it stays installed: an alarm that was under way when the job ended finds nothing armed
        signal.signal(signal.SIGALRM, self._strike)
        self._armed = plan
        signal.setitimer(signal.ITIMER_REAL, plan.soft)
        try:
            return plan.function(*args, **kwargs)
        finally:
            self._armed = None
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _strike(self, _signal: int, _frame: FrameType | None) -> None:
        plan = self._armed
        if plan is not None:
            raise SoftTimeLimit(plan.name, plan.soft)
