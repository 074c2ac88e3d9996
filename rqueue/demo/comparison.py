"""History, the lake made of it, and the jobs that there were: do they agree, row by row?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["ENDINGS", "Comparison", "RowKey", "print_comparison"]

ENDINGS = frozenset({"ack", "dead", "cancelled", "purged", "expired", "displaced", "moved"})
"""Outcomes that end a job."""

RowKey = tuple[str, str, str, str]
"""Of a row: queue, entry, job and outcome."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows of history and of the lake, how many different ones (queue, entry, row) the lake has,
    and the ids of all jobs that were ever enqueued."""

    history: Counter[RowKey]
    lake: Counter[RowKey]
    distinct: int
    jobs: Set[str]

    @classmethod
    def of(
        cls,
        history: Iterable[RowKey],
        lake: Iterable[tuple[RowKey, int]],
        jobs: Set[str],
    ) -> Comparison:
        """history: its rows. lake: its rows, and the number that each has in its entry."""
        rows = list(lake)
        distinct = len({(key[0], key[1], row) for key, row in rows})
        return cls(Counter(history), Counter(key for key, _ in rows), distinct, jobs)

    @property
    def lost(self) -> Counter[RowKey]:
        """Rows of history that the lake does not have."""
        return self.history - self.lake

    @property
    def strange(self) -> Counter[RowKey]:
        """Rows of the lake that history does not have, or has fewer times."""
        return self.lake - self.history

    @property
    def twice(self) -> int:
        """Rows that the lake has more than once."""
        return self.lake.total() - self.distinct

    @staticmethod
    def ended(rows: Counter[RowKey]) -> Counter[str]:
        """Jobs that ended, and how often."""
        found: Counter[str] = Counter()
        for (_, _, job, outcome), count in rows.items():
            if outcome in ENDINGS:
                found[job] += count
        return found

    @property
    def problems(self) -> list[str]:
        """The differences, in words; nothing if all agree."""
        ended = self.ended(self.lake)
        facts: list[tuple[str, Sequence[object]]] = [
            ("rows of history are not in the lake", list(self.lost.elements())),
            ("rows of the lake are not in history", list(self.strange.elements())),
            ("rows are in the lake more than once", [None] * self.twice),
            ("jobs did not end, by the lake", sorted(self.jobs - ended.keys())),
            ("jobs ended that were not enqueued", sorted(ended.keys() - self.jobs)),
            (
                "jobs ended more than once, by the lake",
                sorted(job for job in ended if ended[job] > 1),
            ),
        ]
        said = []
        for what, which in facts:
            if which:
                some = ", ".join(str(one) for one in which[:_SHOWN] if one is not None)
                said.append(f"{len(which):,} {what}" + (f": {some}" if some else ""))
        if not self.jobs:
            said.append("there was nothing to compare")
        return said


def print_comparison(console: Console, found: Comparison) -> None:
    """Print the numbers side by side, and the verdict."""
    table = Table("", "history in Redis", "lake", title="history and lake")
    table.add_row("rows", f"{found.history.total():,}", f"{found.lake.total():,}")
    table.add_row("of them different", "", f"{found.distinct:,}")
    sides = [found.ended(found.history), found.ended(found.lake)]
    table.add_row("jobs that ended", *(f"{len(side):,}" for side in sides))
    table.add_row("jobs enqueued", *[f"{len(found.jobs):,}"] * 2)
    for outcome in sorted({key[3] for key in (*found.history, *found.lake)}):
        counts = (
            sum(count for key, count in side.items() if key[3] == outcome)
            for side in (found.history, found.lake)
        )
        table.add_row(f"  {outcome}", *(f"{count:,}" for count in counts))
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    if not found.problems:
        console.print(
            "[green]every row of history is in the lake once, and every job ended once[/]"
        )
    for problem in found.problems:
        console.print("[red]wrong:[/]", escape(problem), highlight=False)
