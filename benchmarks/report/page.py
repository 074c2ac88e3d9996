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
        shown = name
        if row["failure"]:
            lines.append(f"| `{shown}` | **not measured:** {row['failure'][:160]} | | | **?** |")
            shown = ""
        for what, (middle, low, high, unit, verdict) in row["figures"].items():
            between = "" if low == high else f"{number(low, unit)} – {number(high, unit)}"
            space = "" if unit in ("×", "%") else " "
            first = f"`{shown}`" if shown else ""
            value = f"{number(middle, unit)}{space}{unit}"
            lines.append(f"| {first} | {what} | {value} | {between} | {SIGNS[verdict]} |")
            shown = ""
    return lines


def _head(name: str, about: dict[str, Any]) -> str:
    facts = [f"{key} {value}" for key, value in about.items() if key != "peers"]
    peers = about.get("peers", {})
    if peers:
        facts.append("peers " + ", ".join(f"{peer} {version}" for peer, version in peers.items()))
    return f"**{name}** ({'; '.join(facts)})"


def publish() -> None:
    """Write the tables of the runs that are kept."""
    runs = json.loads(SUMMARY.read_text())
    parts: list[str] = []
    for name, run in runs.items():
        parts += ["", _head(name, run["about"]), "", *_rows(run)]
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(parts) + "\n\n" + END + after)
