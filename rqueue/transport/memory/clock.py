"""The time of a server in memory."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """Goes as this machine's does, from another point where it was moved, or stands still.

    In microseconds since the epoch, as Redis counts.
    """

    def __init__(self) -> None:
        self._offset_us = 0
        self._stopped_us: int | None = None

    @property
    def now_us(self) -> int:
        """The time."""
        if self._stopped_us is not None:
            return self._stopped_us
        return time.time_ns() // 1000 + self._offset_us

    @property
    def stopped(self) -> bool:
        """Whether it stands still."""
        return self._stopped_us is not None

    def stop(self, at_us: int | None = None) -> None:
        """Stand still, now or at a time."""
        self._stopped_us = self.now_us if at_us is None else at_us

    def go_on(self) -> None:
        """Go on from where it stands."""
        if self._stopped_us is not None:
            self._offset_us = self._stopped_us - time.time_ns() // 1000
            self._stopped_us = None

    def move(self, by_us: int) -> None:
        """Put it forward, or back."""
        if self._stopped_us is None:
            self._offset_us += by_us
        else:
            self._stopped_us += by_us
