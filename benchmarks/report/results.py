"""The results' file: what was measured, on what, when; and the summary of it that is kept."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.lab.processes import ROOT
from benchmarks.rows.row import Outcome

RESULTS = ROOT / "benchmarks" / "results"
SUMMARY = RESULTS / "summary.json"


def about(server: str, size: str, rounds: int) -> dict[str, Any]:
    """The machine and programs of a run, without names of machines or paths."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return {
        "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        "commit": commit,
        "server": server,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "size": size,
        "rounds": rounds,
    }


def write(facts: dict[str, Any], outcomes: Sequence[Outcome], name: str) -> Path:
    """Write one run; returns the file."""
    RESULTS.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = RESULTS / f"{name}-{stamp}.json"
    data = {"about": facts, "rows": [outcome.to_json() for outcome in outcomes]}
    path.write_text(json.dumps(data, indent=1) + "\n")
    return path


def summarize(facts: dict[str, Any], outcomes: Sequence[Outcome], name: str) -> None:
    """Put the run into the summary, which is kept for each server apart: its rows take the places
    of those of earlier runs on the same server."""
    known = json.loads(SUMMARY.read_text()) if SUMMARY.exists() else {}
    runs = known.setdefault(name, {})
    server = facts["server"]
    rows = {}
    for outcome in outcomes:
        rows[outcome.row] = {
            **{key: facts[key] for key in ("at", "commit", "load", "size", "rounds")},
            "failure": outcome.failure.replace(f"{ROOT}/", ""),
            "figures": {
                figure.what: [
                    *(float(f"{v:.4g}") for v in _three(figure.spread)),
                    figure.unit,
                    figure.verdict,
                ]
                for figure in outcome.figures
            },
        }
    earlier = runs.get(server, {"about": {}, "rows": {}})
    if peers := {**earlier["about"].get("peers", {}), **facts.get("peers", {})}:
        facts = {**facts, "peers": peers}
    runs[server] = {"about": facts, "rows": {**earlier["rows"], **rows}}
    SUMMARY.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def _three(spread: Any) -> tuple[float, float, float]:
    return spread.middle, spread.low, spread.high
