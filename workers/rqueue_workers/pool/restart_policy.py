"""When the place of a dead worker is filled again: at once, or later if that happens too often."""

from __future__ import annotations

from collections.abc import Sequence

STEADY = 2.0
"""Seconds at work after which a worker's death says nothing about its successor's chances."""


class RestartPolicy:
    """Remembers, for each slot, how often in a row its worker died soon."""

    def __init__(self, delays: Sequence[float]) -> None:
        self._delays = delays or (0.0,)
        self._deaths: dict[int, int] = {}
        self._at: dict[int, float] = {}
        self._faults: dict[int, int] = {}

    def died(self, index: int, now: float, at_work: float) -> float:
        """A worker died that had been at work for so many seconds; returns the delay."""
        soon = 0 if at_work >= STEADY else self._deaths.get(index, -1) + 1
        self._deaths[index] = soon
        delay = self._delays[min(soon, len(self._delays) - 1)]
        self._at[index] = now + delay
        return delay

    def failed(self, index: int, at_work: float) -> int:
        """A worker died by a fault of rqueue's own with which no job was charged; returns how many
        of this slot did so in a row, each soon after it had got to work."""
        self._faults[index] = 0 if at_work >= STEADY else self._faults.get(index, 0) + 1
        return self._faults[index]

    def explained(self) -> None:
        """A job was charged with a fault of rqueue's own: the faults before were the first ones of
        such jobs, perhaps, and are counted no more."""
        self._faults.clear()

    def left(self, index: int) -> None:
        """A worker left in order."""
        self._deaths.pop(index, None)
        self._at.pop(index, None)

    def at(self, index: int) -> float:
        """When the slot may be filled, by `time.monotonic()`; 0 = at once."""
        return self._at.get(index, 0.0)
