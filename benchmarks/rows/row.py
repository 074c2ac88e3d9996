"""A row of the table: what is measured, what it must reach, and what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.rounds import Spread


class Unmeasured(Exception):
    """This row cannot be measured here and now; the reason is shown in its place."""


@dataclass(frozen=True)
class Target:
    """A figure that must be reached, and one that is aimed at. `more`: more is better. `every`: by
    each single round, not by the median alone."""

    must: float
    aim: float | None = None
    more: bool = True
    every: bool = False

    def reached(self, value: float) -> bool:
        return value >= self.must if self.more else value <= self.must

    def aimed(self, value: float) -> bool:
        if self.aim is None:
            return False
        return value >= self.aim if self.more else value <= self.aim

    def __str__(self) -> str:
        sign = "≥" if self.more else "≤"
        text = f"{sign} {self.must:g}" + ("" if self.aim is None else f" ({self.aim:g})")
        return f"{text}, every round" if self.every else text


@dataclass(frozen=True)
class Figure:
    """One figure of a row. `unit` is × for a ratio. Without a target it is for information."""

    what: str
    spread: Spread
    unit: str = "×"
    target: Target | None = None

    @property
    def verdict(self) -> str:
        """aim, reached, missed, or info."""
        if self.target is None:
            return "info"
        counts = self.spread.middle
        if self.target.every:
            counts = self.spread.low if self.target.more else self.spread.high
        if self.target.aimed(counts):
            return "aim"
        return "reached" if self.target.reached(counts) else "missed"

    def to_json(self) -> dict[str, Any]:
        """All of it, for the results' file."""
        found: dict[str, Any] = {
            "what": self.what,
            "unit": self.unit,
            "verdict": self.verdict,
            **self.spread.to_json(),
        }
        if self.target is not None:
            found["must"], found["aim"] = self.target.must, self.target.aim
            found["more_is_better"] = self.target.more
        return found


@dataclass(frozen=True)
class Row:
    """One thing that is measured. `part`: floors or rqueue."""

    name: str
    what: str
    measure: Callable[[Bench], list[Figure]]
    part: str = "rqueue"


@dataclass
class Outcome:
    """A row and what came of it."""

    row: str
    what: str
    figures: list[Figure] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """All of it, for the results' file."""
        return {
            "row": self.row,
            "what": self.what,
            "failure": self.failure,
            "seconds": round(self.seconds, 2),
            "figures": [figure.to_json() for figure in self.figures],
        }


ROWS: dict[str, Row] = {}


def row(name: str, what: str, part: str = "rqueue") -> Callable[[Any], Any]:
    """Enter a function into the table under a name."""

    def enter(function: Callable[[Bench], list[Figure]]) -> Callable[[Bench], list[Figure]]:
        ROWS[name] = Row(name, what, function, part)
        return function

    return enter
