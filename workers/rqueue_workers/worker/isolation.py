"""Jobs that crashed before run alone: a process runs nothing beside one of them, and begins nothing
until it is settled. So the next crash names its culprit, and what only ran beside one ends well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.subscription import Subscription, Unstarted

FIRST_S = 0.25
"""Seconds that a crashed job waits, the first time, for the others of the process to end."""

ASIDE_MOST_S = 4.0
"""Seconds that a crashed job is put aside at most: another process may be free by then."""

ASIDE_LEAST_S = 0.05

ALOOF_S = 0.05
"""Seconds in which others may take what was passed on to them."""

PASSED_S = 0.5
"""A job that comes back sooner than so many seconds after it was passed on found no taker."""

REMEMBERED = 1000
"""Jobs of which a process remembers that it passed them on."""


class Isolation:
    """The one job that is to run alone in this process. Used under the dispatcher's lock.

    Where the others do not end in time, the process rests: for twice as long as it waited it waits
    for no crashed job, whichever comes, and the next one will wait twice as long. So it stands
    still for at most half of the time, and whatever ends lets the job run in the end. What it does
    not wait for it passes on: another process may be free. What comes back at once found no taker,
    and is put aside.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        executors: Mapping[int, Executor],
        slot: CurrentJob,
    ) -> None:
        self.active = False
        """A crashed job waits, runs, or is not settled yet: nothing else begins."""
        self.aloof = False
        """Others are to look first at what was passed on to them: nothing is pulled."""
        self.watching = False
        """`advance` has something to see to."""
        self.wary = False
        """A crashed job was settled: the next one may be such a one too, so it is pulled alone."""
        self._subscriptions = subscriptions
        self._executors = executors
        self._slot = slot
        self.ready: tuple[Subscription, Unstarted] | None = None
        """The job that may begin now: the caller of `advance` begins it."""
        self._waiting: tuple[Subscription, Unstarted] | None = None
        self._since = 0.0
        self._patience = FIRST_S
        self._rest_until = 0.0
        self._aloof_until = 0.0
        self._passed: dict[bytes, float] = {}

    def admit(self, subscription: Subscription, job: Unstarted) -> bool:
        """A crashed job came: it begins when nothing else runs, or not here. Whether it waits. Only
        while none is active."""
        now = monotonic()
        self.watching = True
        if now < self._rest_until and not self._quiet():
            self._turn_away(subscription, job, now)
            return False
        self.active = True
        self._waiting = subscription, job
        self._since = now
        return True

    def advance(self, now: float) -> bool:
        """Begin what waits, or let the others begin, if that may be now; turn it away where it
        waited for too long. Whether anything changed."""
        if self._quiet():
            changed = self.active or self.aloof
            self._patience = FIRST_S
            self._rest_until = 0.0
            self.aloof = False
            self._go_on()
            self.watching = self.active
            return changed
        changed = self.aloof and now >= self._aloof_until
        if changed:
            self.aloof = False
        if self._waiting is None or now < self._since + self._patience:
            return changed
        waiting = self._waiting
        self.give_up()
        self.wary = False
        self._rest_until = now + 2 * (now - self._since)
        self._patience *= 2
        self._turn_away(*waiting, now)
        return True

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self.ready = waiting
        elif self.active:
            self.active, self.wary = False, True

    def _turn_away(self, subscription: Subscription, job: Unstarted, now: float) -> None:
        """A job does not wait here: others are to have a look at it, and if it comes back from them
        it waits aside."""
        id_, value, acquired = job
        passed = self._passed.pop(id_, 0.0)
        # what comes by and by must not keep the process aloof all the time
        if now - passed > PASSED_S and (self.aloof or now >= self._aloof_until + 3 * ALOOF_S):
            if len(self._passed) >= REMEMBERED:
                self._passed.clear()
            self._passed[id_] = now
            if not self.aloof:
                self.aloof, self._aloof_until = True, now + ALOOF_S
            subscription.passing.append((id_, value))
            return
        aside = min(max(self._rest_until - now, ASIDE_LEAST_S), ASIDE_MOST_S)
        subscription.put_off(id_, value, acquired, now, aside)

    @property
    def until(self) -> float:
        """When `advance` has something to do in any case, by monotonic time; 0.0 = never."""
        times = [self._aloof_until] if self.aloof else []
        if self._waiting is not None:
            times.append(self._since + self._patience)
        return min(times, default=0.0)

    def take(self, subscription: Subscription, id: bytes | None = None) -> list[Unstarted]:
        """Take back what waits, if it is in this subscription (and has this id)."""
        waiting = self._waiting
        if waiting is None or waiting[0] is not subscription or id not in (None, waiting[1][0]):
            return []
        self.give_up()
        return [waiting[1]]

    def give_up(self) -> None:
        """What waits does not run here."""
        if self._waiting is not None:
            self._waiting = None
            self.active = False

    def _quiet(self) -> bool:
        """Whether nothing waits, begins, runs or is to be reported in this process."""
        # looked at in the order in which a job goes from one to the next
        if self._slot.busy or not all(executor.idle for executor in self._executors.values()):
            return False
        return not any(
            subscription.todo or (not subscription.route.away and subscription.owes)
            for subscription in self._subscriptions
        )
