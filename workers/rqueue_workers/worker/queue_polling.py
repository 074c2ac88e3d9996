"""Which queue is served next: one after the other, or strictly in their order (Q-31, Q-46)."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue_workers.worker.subscription import Subscription


class QueuePolling:
    """Chooses among the subscriptions that have jobs to run. A turn is at most one batch."""

    def __init__(self, subscriptions: Sequence[Subscription], strict: bool) -> None:
        self._subscriptions = list(subscriptions)
        self._strict = strict
        self._next = 0

    def next(self) -> Subscription | None:
        """The subscription whose jobs run now; None when none has any."""
        subscriptions = self._subscriptions
        if self._strict or len(subscriptions) == 1:
            for subscription in subscriptions:
                if subscription.todo and not subscription.damage.since:
                    return subscription
            return None
        count = len(subscriptions)
        for step in range(count):
            index = (self._next + step) % count
            if subscriptions[index].todo and not subscriptions[index].damage.since:
                self._next = (index + 1) % count
                return subscriptions[index]
        return None

    def pulls(self, subscription: Subscription) -> bool:
        """Whether a subscription may acquire now: served strictly, only while no queue before it
        holds work, or was offered more than it could take."""
        if not self._strict:
            return True
        for other in self._subscriptions:
            if other is subscription:
                return True
            if other.damage.since:
                continue
            if other.todo or other.state == "notified":
                return False
        return True
