"""Which queue is served next: one after the other, or strictly in their order (Q-31, Q-46)."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue_workers.worker.subscription import Hand


class Turns:
    """Chooses among the hands that have jobs to run. A turn is at most one batch."""

    def __init__(self, hands: Sequence[Hand], strict: bool) -> None:
        self._hands = list(hands)
        self._strict = strict
        self._next = 0

    def next(self) -> Hand | None:
        """The hand whose jobs run now; None when none has any."""
        hands = self._hands
        if self._strict or len(hands) == 1:
            for hand in hands:
                if hand.todo:
                    return hand
            return None
        count = len(hands)
        for step in range(count):
            index = (self._next + step) % count
            if hands[index].todo:
                self._next = (index + 1) % count
                return hands[index]
        return None

    def pulls(self, hand: Hand) -> bool:
        """Whether a hand may acquire now: served strictly, only while no queue before it has work
        in hand, or more than it could take."""
        if not self._strict:
            return True
        for other in self._hands:
            if other is hand:
                return True
            if other.todo or other.state == "notified":
                return False
        return True
