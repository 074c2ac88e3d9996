"""Puts the summary into docs/performance.md, between its markers."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.lab.processes import ROOT
from benchmarks.report.results import SUMMARY
from benchmarks.report.table import number

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->"
SIGNS = {"aim": "✓ aim", "reached": "✓", "missed": "**✗**", "info": ""}


def _rows(run: dict[str, Any]) -> list[str]:
    lines = ["| row | figure | median | min – max | |", "| --- | --- | ---: | ---: | --- |"]
    for name, row in run["rows"].items():
        shown = f"`{name}`"
        if row["failure"]:
            lines.append(f"| {shown} | **not measured:** {row['failure'][:160]} | | | **?** |")
            shown = ""
        for what, (middle, low, high, unit, verdict) in row["figures"].items():
            between = "" if low == high else f"{number(low, unit)} – {number(high, unit)}"
            space = "" if unit in ("×", "%") else " "
            value = f"{number(middle, unit)}{space}{unit}"
            lines.append(f"| {shown} | {what} | {value} | {between} | {SIGNS[verdict]} |")
            shown = ""
    return lines


def _when(rows: dict[str, Any]) -> list[str]:
    """Which rows were measured when, on which commit, under which load."""
    runs: dict[str, list[str]] = {}
    for name, row in rows.items():
        when = f"{row['at']}, commit {row['commit']}, load {row['load']} at its start"
        when += f", size {row['size']}, {row['rounds']} rounds"
        runs.setdefault(when, []).append(f"`{name}`")
    if len(runs) == 1:
        return [f"Measured {next(iter(runs))}."]
    return [f"Measured {when}: {', '.join(names)}." for when, names in runs.items()]


def _head(name: str, run: dict[str, Any]) -> list[str]:
    about = run["about"]
    facts = (
        f"{about['server']}; Python {about['python']}; {about['system']}; {about['cores']} cores"
    )
    peers = about.get("peers", {})
    lines = [f"### {name.capitalize()}", "", f"{facts}.", *_when(run["rows"])]
    if peers:
        lines.append("Versions: " + ", ".join(f"{n} {v}" for n, v in peers.items()) + ".")
    return lines


def publish() -> None:
    """Write the tables of the runs that are kept."""
    runs = json.loads(SUMMARY.read_text())
    parts: list[str] = []
    for name, run in runs.items():
        parts += ["", *_head(name, run), "", *_rows(run)]
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(parts) + "\n\n" + END + after)
