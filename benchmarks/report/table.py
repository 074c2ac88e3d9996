"""The table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.rows.row import Figure, Outcome

VERDICTS = {
    "aim": "[green]✓ aim[/]",
    "reached": "[green]✓[/]",
    "missed": "[bold red]✗ missed[/]",
    "info": "",
}


def number(value: float, unit: str) -> str:
    """A number as people read it."""
    if unit in ("jobs/s", "bytes", "jobs") or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.0005:
        return "0"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}".rstrip("0").rstrip(".")


def middle_and_spread(figure: Figure) -> tuple[str, str]:
    """The median with its unit, and the extremes where there are several values."""
    found, unit = figure.spread, figure.unit
    space = "" if unit in ("×", "%") else " "
    middle = f"{number(found.middle, unit)}{space}{unit}"
    if len(found.values) == 1:
        return middle, ""
    return middle, f"{number(found.low, unit)} – {number(found.high, unit)}"


def show(console: Console, facts: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """Print all rows."""
    table = Table(title="rqueue's benchmarks", title_justify="left", expand=False)
    table.add_column("what", overflow="fold")
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("spread", justify="right", no_wrap=True)
    table.add_column("must (aim)", no_wrap=True)
    table.add_column("", no_wrap=True)
    for outcome in outcomes:
        table.add_row(f"[bold]{escape(outcome.what)}[/] [dim]{outcome.row}[/]", *[""] * 4)
        if outcome.failure:
            table.add_row(
                f"  [bold red]NOT MEASURED[/] {escape(outcome.failure)}",
                "",
                "",
                "",
                "[bold red]?[/]",
            )
        for figure in outcome.figures:
            middle, between = middle_and_spread(figure)
            style = "" if figure.target else "dim"
            target = str(figure.target or "")
            table.add_row(
                f"  {escape(figure.what)}",
                middle,
                between,
                target,
                VERDICTS[figure.verdict],
                style=style,
            )
        table.add_section()
    console.print(table)
    facts_ = ", ".join(f"{name} {value}" for name, value in facts.items())
    console.print(f"[dim]{escape(facts_)}[/]", soft_wrap=True)
    missed = [o.row for o in outcomes if any(f.verdict == "missed" for f in o.figures)]
    unmeasured = [o.row for o in outcomes if o.failure]
    if missed:
        console.print(f"[red]missed:[/] {', '.join(missed)}")
    if unmeasured:
        console.print(f"[red]not measured:[/] {', '.join(unmeasured)}")
