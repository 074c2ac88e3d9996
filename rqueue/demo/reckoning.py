"""The demo's run in figures: totals, speed, waiting, and what the kill cost, by the history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from rqueue.demo.modules import COUNTED, LIBRARY, Measure
from rqueue.protocol.commands import Counts


class Kill(NamedTuple):
    """Which process was killed, when (ms, Redis's clock), and what each consumer held just then.
    pid 0: none."""

    pid: int
    at_ms: int
    held: dict[str, list[str]]


def percentile(values: list[int], share: float) -> int:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The run, and whether it is right."""

    results: list[Measure]
    expected: list[Measure]
    history: list[dict[str, Any]]
    kill: Kill
    held: set[str]
    """The jobs that the killed worker held."""
    seconds: float
    counts: Counts

    def total(self, name: str, of: list[Measure]) -> int:
        """Sum of one number over modules."""
        return sum(int(dict[str, Any](one)[name]) for one in of)

    @property
    def acked(self) -> list[dict[str, Any]]:
        """Rows of the jobs that finished."""
        return [row for row in self.history if row["outcome"] == "ack"]

    @property
    def crashed(self) -> set[str]:
        """Jobs that were running when their worker died: charged one attempt, begun again."""
        return {row["id"] for row in self.history if row["outcome"] == "crash"}

    @property
    def reclaimed(self) -> list[dict[str, Any]]:
        """Rows of the jobs that the dead worker held and another one finished."""
        return [row for row in self.acked if row["id"] in self.held and row["deliveries"] > 0]

    @property
    def lost(self) -> int:
        """Jobs that never finished."""
        return len(self.expected) - len({row["id"] for row in self.acked})

    @property
    def twice(self) -> int:
        """Jobs that finished more than once in the history: must be none."""
        return len(self.acked) - len({row["id"] for row in self.acked})

    @property
    def recovery_ms(self) -> int:
        """ms from the kill until the last job that it had held was running again."""
        again = [row["started"] for row in self.reclaimed if row["started"] >= self.kill.at_ms]
        return max(again, default=self.kill.at_ms) - self.kill.at_ms

    @property
    def right(self) -> bool:
        """Every job finished exactly once, and the totals are those of a plain loop."""
        left = self.counts.ready + self.counts.scheduled + self.counts.held + self.counts.dead
        same = all(self.total(n, self.results) == self.total(n, self.expected) for n in COUNTED)
        return (
            same
            and self.lost == 0
            and self.twice == 0
            and left == 0
            and self.kill.pid != 0
            and len(self.results) == len(self.expected)
        )


def print_reckoning(console: Console, run: Reckoning) -> None:
    """Print the tables."""
    ten = Table("module", "functions", "branches", "longest function", title="ten most complex")
    for one in sorted(run.results, key=lambda one: -one["branches"])[:10]:
        name = str(Path(one["path"]).relative_to(LIBRARY))
        longest = f"{one['longest']} lines: {one['longest_name']}"
        ten.add_row(name, str(one["functions"]), str(one["branches"]), longest)
    console.print(ten)

    totals = Table("", "by the queue", "by a plain loop", title="totals")
    totals.add_row("modules", str(len(run.results)), str(len(run.expected)))
    for name in COUNTED:
        totals.add_row(
            name, f"{run.total(name, run.results):,}", f"{run.total(name, run.expected):,}"
        )
    console.print(totals)

    waits = [row["started"] - row["enqueued"] for row in run.acked]
    speed = Table.grid(padding=(0, 2))
    speed.add_row("jobs per second", f"{len(run.results) / run.seconds:,.0f}")
    speed.add_row("wait p50 / p99", f"{percentile(waits, 0.5)} / {percentile(waits, 0.99)} ms")
    speed.add_row("", "")
    speed.add_row(f"the kill of process {run.kill.pid} cost", "")
    speed.add_row("  jobs reclaimed", str(len(run.reclaimed)))
    speed.add_row("  begun twice", str(len(run.crashed)))
    speed.add_row("  lost", str(run.lost))
    speed.add_row("  all of them running again after", f"{run.recovery_ms} ms")
    console.print(speed)
    verdict = "[green]every job ended exactly once, and the totals agree[/]"
    console.print(verdict if run.right else "[red]something is wrong: see above[/]")
