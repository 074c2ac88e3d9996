"""The verdict for people, and for programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.soak.evidence import Evidence
from tests.soak.verdict import Verdict

SHOWN = 5
"""Examples of each rule that are shown."""


def as_json(verdict: Verdict, evidence: Evidence, about: dict[str, Any]) -> str:
    """Everything, as one JSON object."""
    faults = Counter(fault["name"] for fault in evidence.records["fault"])
    return orjson.dumps(
        {
            **about,
            "right": verdict.right,
            "counts": verdict.counts,
            "faults": dict(faults),
            "begun again because": verdict.causes,
            "cases": verdict.cases,
            "wrong": verdict.wrong,
        },
        option=orjson.OPT_INDENT_2,
    ).decode()


def print_report(
    console: Console, verdict: Verdict, evidence: Evidence, about: dict[str, Any]
) -> None:
    """What was done, what became of it, and what is wrong, with examples."""
    done = Table.grid(padding=(0, 2))
    for name, value in {**about, **verdict.counts}.items():
        done.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
    console.print(done, soft_wrap=True)

    faults = Counter(fault["name"] for fault in evidence.records["fault"])
    missed = Counter(fault["name"] for fault in evidence.records["no target"])
    said = ", ".join(
        f"{name} {times}" + (f" (+{missed[name]} missed)" if missed[name] else "")
        for name, times in sorted(faults.items())
    )
    console.print(Text(f"\nfaults: {said}"))
    for record in evidence.records["fault failed"]:
        console.print(Text(f"fault {record['name']} failed: {record['said']}"))
    causes = ", ".join(f"{why} {times}" for why, times in sorted(verdict.causes.items()))
    console.print(Text(f"\nbegun again: {causes or 'none'}\n"))

    table = Table("must not be", "found", "of cases")
    for rule, found in verdict.wrong.items():
        style = "red" if found else "green"
        cases = str(verdict.cases.get(rule, ""))
        table.add_row(rule, Text(str(len(found)), style=style), cases)
    console.print(table)
    for rule, found in verdict.wrong.items():
        if found:
            console.print(Text(f"\n{rule}:", style="red"))
            for line in found[:SHOWN]:
                console.print(Text(f"  {line}"), soft_wrap=True)
            if len(found) > SHOWN:
                console.print(Text(f"  ... and {len(found) - SHOWN} more"))
    console.print(Text("RIGHT" if verdict.right else "WRONG", style="bold"))
