"""Which queue is served next: in turn, by weight, or strictly in their order (Q-31, Q-46)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from rqueue_workers.worker.subscription import Subscription


class QueuePolling:
    """Shares the slots of a worker among its subscriptions: the time of the main thread, in turns
    of at most one batch or one long job, and the places of executors.

    weights: by queue, how much of both it has for each one that a queue of weight 1 has, which is
    that of those that are not named.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        strict: bool,
        weights: Mapping[str, int],
    ) -> None:
        self._subscriptions = list(subscriptions)
        self._strict = strict
        self._weights = [weights.get(one.queue, 1) for one in subscriptions]
        self._used = [0.0] * len(self._weights)
        """Seconds of the main thread that each had, by its weight."""
        self._waived = [0.0] * len(self._weights)
        """Jobs in executors that each did without while it had none, by its weight."""

    def next(self, barred: Container[Subscription] = ()) -> Subscription | None:
        """The subscription whose jobs run now in the main thread, that which had the least of its
        time; None when none has any. barred: those of which no job may begin."""
        subscriptions = self._subscriptions
        if self._strict or len(subscriptions) == 1:
            for subscription in subscriptions:
                if (
                    subscription.todo
                    and not subscription.damage.since
                    and subscription not in barred
                ):
                    return subscription
            return None
        used = self._used
        ready = [
            one for one in subscriptions if one.todo and not one.damage.since and one not in barred
        ]
        if not ready:
            return None
        chosen = min(ready, key=lambda one: used[one.index])
        least = used[chosen.index]
        for one in subscriptions:
            if used[one.index] < least and (one.state == "interested" or one.away):
                used[one.index] = least  # a queue that is empty saves up no time
        return chosen

    def ran(self, subscription: Subscription, seconds: float) -> None:
        """A turn of it has taken so long."""
        at = subscription.index
        self._used[at] += seconds / self._weights[at]

    def pulls(self, subscription: Subscription) -> bool:
        """Whether a subscription may acquire now: served strictly, only while no queue before it
        holds work, or was offered more than it could take."""
        if not self._strict:
            return True
        for other in self._subscriptions:
            if other is subscription:
                return True
            if other.away:
                continue
            if other.todo or other.state == "notified":
                return False
        return True

    def share(self, subscription: Subscription, kind: int, places: int) -> int:
        """How many of an executor's places a subscription may have: all of them, unless others may
        have jobs for it that wait; rounded up. Not asked where queues are served strictly."""
        mine = all_ = 0
        for other, weight in zip(self._subscriptions, self._weights, strict=True):
            if other is subscription:
                mine = weight
            elif other.state == "interested" or other.away or not other.runs_in(kind):
                continue  # what comes to it finds places that are not taken, or the next ones
            all_ += weight
        return -(-places * mine // all_)

    def in_turn(self) -> Sequence[Subscription]:
        """All subscriptions, that which had the fewest places for its weight first: it takes what
        is free."""
        subscriptions = self._subscriptions
        if self._strict or len(subscriptions) == 1:
            return subscriptions
        had = [
            one.diverted / weight + waived
            for one, weight, waived in zip(subscriptions, self._weights, self._waived, strict=True)
        ]
        waiting = [
            jobs for jobs, one in zip(had, subscriptions, strict=True) if one.state != "interested"
        ]
        least = min(waiting, default=0.0)
        for at, one in enumerate(subscriptions):
            if one.state == "interested" and had[at] < least:
                self._waived[at] += least - had[at]
                had[at] = least
        return [subscriptions[at] for at in sorted(range(len(had)), key=had.__getitem__)]
