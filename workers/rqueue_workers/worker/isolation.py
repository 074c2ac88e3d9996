"""Jobs that crashed before run alone: a process runs nothing beside one of them, and begins nothing
until it is settled. So the next crash names its culprit, and what only ran beside one ends well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from rqueue_workers.worker.arrivals import Unstarted
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.executors.main_thread import CurrentJob
from rqueue_workers.worker.subscription import Subscription

FIRST_S = 1.0
"""Seconds that a crashed job waits, the first time, for the others of its process to end."""

REMEMBERED = 1000
"""Jobs of which a process remembers how long they waited last."""


class Isolation:
    """The one job that is to run alone in this process. Used under the dispatcher's lock.

    begin: gives a job to the executor that it belongs to. Where the others do not end in time, the
    job is put off: for as long as it waited, and it will wait twice as long. So this process stands
    still for at most half of the time, and whatever ends lets the job run in the end.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        executors: Mapping[int, Executor],
        slot: CurrentJob,
        begin: Callable[[Subscription, bytes, bytes, int], None],
    ) -> None:
        self.active = False
        """A crashed job waits, runs, or is not settled yet: nothing else begins."""
        self.wary = False
        """A crashed job was settled: the next one may be such a one too, so it is pulled alone."""
        self._subscriptions = subscriptions
        self._executors = executors
        self._slot = slot
        self._begin = begin
        self._waiting: tuple[Subscription, Unstarted] | None = None
        self._since = 0.0
        self._patience: dict[bytes, float] = {}

    def admit(self, subscription: Subscription, job: Unstarted) -> None:
        """A crashed job came: it begins when nothing else runs. Only while none is active."""
        self.active = True
        self._waiting = subscription, job
        self._since = monotonic()

    def advance(self, now: float) -> bool:
        """Begin what waits, or let the others begin, if that may be now; else put it off where it
        waited for too long. Whether anything changed."""
        if self._quiet():
            waiting, self._waiting = self._waiting, None
            if waiting is None:
                self.active, self.wary = False, True
            else:
                self._patience.pop(waiting[1][0], None)
                self._begin(waiting[0], *waiting[1])
            return True
        if self._waiting is None or now < self.until:
            return False
        subscription, (id_, value, acquired) = self._waiting
        waited = self._patience.get(id_, FIRST_S)
        if len(self._patience) >= REMEMBERED:
            self._patience.clear()
        self._patience[id_] = 2 * waited
        self.give_up()
        subscription.put_off(id_, value, acquired, now, waited)
        return True

    @property
    def until(self) -> float:
        """When what waits is put off, by monotonic time; 0.0 = nothing waits."""
        if self._waiting is None:
            return 0.0
        return self._since + self._patience.get(self._waiting[1][0], FIRST_S)

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
            subscription.todo
            or subscription.pending
            or subscription.flight is not None
            or subscription.lost_reply
            for subscription in self._subscriptions
        )
