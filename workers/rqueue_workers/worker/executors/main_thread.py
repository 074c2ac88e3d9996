"""Sync jobs in the main thread: the hot loop. What is not plain takes the long way round."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from types import FrameType
from typing import Any

from orjson import loads

from rqueue.logs import logger
from rqueue.model.envelope import encode_result
from rqueue.model.job import delivered_before, has_crashed
from rqueue.tasks.context import current
from rqueue.tasks.control import Cancelled
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.attempt import NOTHING, Attempts
from rqueue_workers.worker.current_job import INTERRUPT, CurrentJob, Now, SoftLimit
from rqueue_workers.worker.error_text import text
from rqueue_workers.worker.executors.base import Executor, Job
from rqueue_workers.worker.forks import Forks
from rqueue_workers.worker.news import News
from rqueue_workers.worker.outcome import Ack, Done
from rqueue_workers.worker.prefetch import ENOUGH, ENOUGH_S
from rqueue_workers.worker.recycling import Recycling
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import MAIN, Plan

log = logger("rqueue.worker")

SETTLE_S = 0.01
"""Seconds after which an ended job is settled, whatever else is held."""

BATCH = 512
NEVER = 2**63
NO_ARGUMENTS: list[Any] = []

TIMERS = {
    signal.ITIMER_REAL: "ITIMER_REAL (signal.alarm, setitimer)",
    signal.ITIMER_VIRTUAL: "ITIMER_VIRTUAL",
    signal.ITIMER_PROF: "ITIMER_PROF",
}
"""Interval timers: a process has one of each kind."""

_new = tuple.__new__


class Timers:
    """The interval timers that jobs leave behind: they would strike a later job. Those that the
    application has set before the first job are its own."""

    def __init__(self) -> None:
        self._kinds: list[int] = []
        self._said = False

    def watch(self) -> None:
        """From now on a timer is that of a job."""
        self._kinds = [kind for kind in TIMERS if not signal.getitimer(kind)[0]]

    def clear(self) -> None:
        """Take away what a job of the main thread has left behind."""
        for kind in self._kinds:
            if signal.setitimer(kind, 0)[0] and not self._said:
                self._said = True
                log.warning(
                    "a job left a timer behind, %s: it is taken away, and so are later ones, in"
                    " silence; a job has to take its timers away itself",
                    TIMERS[kind],
                )


class MainThreadExecutor:
    """Runs a subscription's jobs here and now.

    executors: the others, which get what turns out to be theirs. ack_early: acks a job before it
    begins, and says whether it may. forks: tells whether this is a child that a job forked; what
    such a one would run next was taken away. recycling: how many may begin before the process makes
    room for a fresh one.
    """

    def __init__(
        self,
        slot: CurrentJob,
        attempts: Attempts,
        page: StatusPage,
        news: News,
        executors: Mapping[int, Executor],
        forks: Forks,
        ack_early: Callable[[Subscription, Ack], bool],
        recycling: Recycling,
    ) -> None:
        self.slot = slot
        self._recycling = recycling
        self._forks = forks
        self._attempts = attempts
        self._page = page
        self._news = news
        self._executors = executors
        self._ack_early = ack_early
        self._mark, self._unmark = page.marker(0), page.unmarker(0)
        self._doubts = page.doubt_counts
        self._number = 1 << 32  # others count from 0: two in a row are never the same
        self._functions: dict[str, Any] = {}
        if attempts.signer is None:
            for plan in attempts.plans.values():
                if plan.plain and plan.executor == MAIN:
                    self._functions[plan.name] = plan.function
        self.timers = Timers()
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            signal.signal(INTERRUPT, self._interrupt)
            slot.main = threading.get_ident()

    def run(self, subscription: Subscription) -> float:
        """Run jobs of `subscription` until none is left or the first of them has to be settled;
        returns the seconds that they took. Their rows are in the subscription then."""
        slot = self.slot
        slot.busy = True
        if self._news.parked:
            self._news.unpark()
        current.set(slot.context)
        popleft = subscription.todo.popleft
        ended = subscription.acks.append
        done = subscription.dones.append
        other = subscription.others.append
        functions = self._functions.get
        attempts = self._attempts
        plans = attempts.plans
        index = subscription.index
        mark = self._mark
        number = self._number
        clock = monotonic
        forks = self._forks
        begun = started = clock()
        limit = begun + SETTLE_S
        count = 0
        # what was acquired before this may be too old, by `Subscription.is_old`
        recent = int((begun - subscription.trust_s) * 1000 + subscription.clock.offset)
        if self._doubts[index] != subscription.doubt:
            recent = NEVER
        seen = -1  # those that came with one reply have one time
        recycling = self._recycling
        most = recycling.room(BATCH) if recycling.active else BATCH
        while count < most:
            try:
                id_, value, acquired = popleft()
            except IndexError:
                break
            if acquired is not seen:
                if acquired >= recent:
                    seen = acquired
                elif subscription.is_old(id_, acquired, begun):
                    subscription.todo.appendleft((id_, value, acquired))
                    subscription.doubtful = True
                    break
            head, _, body = value.partition(b";")
            again = head.count(b",") > 1
            if again:
                if subscription.expires(id_, value, started):
                    continue
                if (count or subscription.pending) and has_crashed(value):
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
            if function is None or type(args) is not list or (again and b"|i" in head):
                if self._long_way(subscription, id_, value, acquired):
                    count += 1
                started = clock()
                # it may be suspected of a death: one that ended well shall not be of the next
                if again and delivered_before(head):
                    subscription.settle_first = has_crashed(value)
                    break
                if started >= limit or subscription.settle_first:
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
                row = (id_, value, head, name, acquired, started, finished)
                other(attempts.failed(row, plans[name], error, subscription))
            else:
                finished = clock()
                row = (id_, value, head, name, acquired, started, finished)
                if result is None:
                    ended(row)
                else:
                    if forks.child:
                        break
                    plan = plans[name]
                    try:
                        payload = encode_result(result, plan.name, attempts.max_body)
                    except BaseException as error:  # its classes are the user's code as well
                        other(attempts.unkept(row, plan, error, subscription))
                    else:
                        done(_new(Done, (*row, plan.keep_ms, payload)))
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
        self.timers.clear()
        slot.busy = False
        self._number = number
        self._unmark()
        seconds = started - begun
        if count:
            if recycling.active:
                recycling.began(count)
            prefetch = subscription.prefetch
            prefetch.jobs += count
            prefetch.seconds += seconds
            if prefetch.jobs >= ENOUGH or prefetch.seconds >= ENOUGH_S:
                prefetch.learn()
        return seconds

    def _long_way(self, subscription: Subscription, id: bytes, value: bytes, acquired: int) -> bool:
        """One job with limits, options, keywords or a signature, or that cannot run at all. Returns
        whether it ended here."""
        slot, attempts = self.slot, self._attempts
        decoded = attempts.decoded(subscription, id, value, acquired)
        if decoded is None:
            return False
        head, plan, args, kwargs, opts = decoded
        if plan.executor != MAIN:
            subscription.executors.add(plan.executor)
            job = Job(subscription, id, value, acquired, head, plan, args, kwargs, opts)
            self._executors[plan.executor].submit((job,))
            return False
        started = monotonic()
        if plan.early:
            row = (id, value, head, plan.name, acquired, started, started)
            if not self._ack_early(subscription, row):
                return False
            started = monotonic()
        allowed = plan.soft_time_limit or plan.time_limit
        deadline = started + plan.time_limit if plan.time_limit else 0.0
        slot.job = (
            subscription, id, value, plan.name, opts, started, acquired,
            started + allowed if allowed else None,
        )  # fmt: skip
        self._page.start(0, subscription.index, id, started, deadline, acquired)
        error: BaseException | None = None
        result: Any = None
        try:
            if plan.soft_time_limit and self._is_main:
                result = self._limited(plan, args, kwargs)
            else:
                result = plan.function(*args, **kwargs)
        except BaseException as raised:
            error = raised
        self.timers.clear()
        if self._forks.child:
            self._forks.leave(error)
        row = (id, value, head, plan.name, acquired, started, monotonic())
        if not plan.early:
            subscription.ended(attempts.ended(row, plan, result, error, subscription))
        elif error is not None:
            attempts.lost(id, plan, error)
        return True

    def _limited(self, plan: Plan, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call with a soft limit, which the stand-by thread and the supervisor watch."""
        slot, page = self.slot, self._page
        limit = SoftLimit(plan.name, plan.soft_time_limit, monotonic())
        slot.limit = limit
        page.set_knock(limit.at)
        self._news.event.set()  # the stand-by thread sleeps no longer than that
        try:
            return plan.function(*args, **kwargs)
        finally:
            slot.limit = None
            page.set_knock(0.0)

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        """Raise in a job that was cancelled, or whose soft limit is over. Anywhere else the knock
        is passed over: who knocked comes again while the job runs."""
        job, limit = self.slot.job, self.slot.limit
        if job is None:
            return
        if job[0].stops.wanted.get(job[1]) == "stop" and self._inside(job, frame):
            job[0].stops.interrupted(job[1])
            raise Cancelled(f"job {text(job[1])} was cancelled")
        if limit is not None:
            struck = limit.struck(monotonic())
            self._page.set_knock(limit.at)
            if struck is not None:
                raise struck

    def _inside(self, job: Now, frame: FrameType | None) -> bool:
        """Whether a frame is one of the job's function, or is called by it."""
        code = getattr(self._attempts.plans[job[3]].function, "__code__", None)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return frame is not None
