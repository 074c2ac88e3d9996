"""Figures with their spread: repeated, interleaved (A B A B ...), compared within a round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def to_json(self) -> dict[str, Any]:
        """Middle, extremes and all values."""
        return {
            "median": self.middle,
            "min": self.low,
            "max": self.high,
            "values": list(self.values),
        }


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(tuple(values))


def interleave(rounds: int, measures: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Measure each in turn, `rounds` times: what the machine does meanwhile meets all of them."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Ratio round by round."""
    return spread([a / b for a, b in zip(above, below, strict=True)])


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[max(0, rank - 1)]
