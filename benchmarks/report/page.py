"""Puts the summary into docs/performance.md, between its markers: servers stand side by side."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import Any

from benchmarks.lab.processes import ROOT
from benchmarks.report.results import SUMMARY
from benchmarks.report.table import number

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->"
SIGNS = {"aim": " ✓ aim", "reached": " ✓", "missed": " **✗**", "info": ""}

Runs = dict[str, dict[str, Any]]
"""The kept results of one kind of run, by server."""


def publish() -> None:
    """Write the tables of the runs that are kept."""
    summary = json.loads(SUMMARY.read_text())
    parts: list[str] = []
    for name, runs in summary.items():
        parts += ["", f"### {name.capitalize()}", "", *_head(runs), "", *_table(runs)]
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(parts) + "\n\n" + END + after)


def _head(runs: Runs) -> list[str]:
    lines = []
    for server, run in runs.items():
        about = run["about"]
        machine = f"Python {about['python']}; {about['system']}; {about['cores']} cores"
        lines.append(f"- **{server}**; {machine}. {_when(run['rows'])}")
        if peers := about.get("peers", {}):
            versions = ", ".join(f"{name} {version}" for name, version in peers.items())
            lines[-1] += f" Versions: {versions}."
    return [_fill(line) for line in lines]


def _fill(item: str) -> str:
    return textwrap.fill(
        item, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _when(rows: dict[str, Any]) -> str:
    """Which rows were measured when, on which commit, under which load."""
    runs: dict[str, list[str]] = {}
    for name, row in rows.items():
        when = f"{row['at']}, commit {row['commit']}, load {row['load']} at its start"
        when += f", size {row['size']}, {row['rounds']} rounds"
        runs.setdefault(when, []).append(f"`{name}`")
    if len(runs) == 1:
        return f"Measured {next(iter(runs))}."
    return " ".join(f"Measured {when}: {', '.join(names)}." for when, names in runs.items())


def _table(runs: Runs) -> list[str]:
    servers = [server.partition(",")[0] for server in runs]
    lines = [
        f"| row | figure | {' | '.join(servers)} |",
        f"| --- | --- | {' | '.join('---:' for _ in servers)} |",
    ]
    for name in _union(run["rows"] for run in runs.values()):
        rows = [run["rows"].get(name) for run in runs.values()]
        shown = f"`{name}`"
        if any(row and row["failure"] for row in rows):
            cells = [f"**not measured:** {row['failure'][:160]}" if row else "" for row in rows]
            lines.append(f"| {shown} | | {' | '.join(cells)} |")
            shown = ""
        for what in _union(row["figures"] for row in rows if row):
            cells = [_cell(row["figures"].get(what)) if row else "" for row in rows]
            lines.append(f"| {shown} | {what} | {' | '.join(cells)} |")
            shown = ""
    return lines


def _union(groups: Iterable[Iterable[str]]) -> list[str]:
    """All names, in the order in which they first come."""
    return list(dict.fromkeys(name for group in groups for name in group))


def _cell(figure: list[Any] | None) -> str:
    if figure is None:
        return ""
    middle, low, high, unit, verdict = figure
    space = "" if unit in ("×", "%") else " "
    text = f"{number(middle, unit)}{space}{unit}{SIGNS[verdict]}"
    return text if low == high else f"{text} ({number(low, unit)} – {number(high, unit)})"
