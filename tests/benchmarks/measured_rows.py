"""What a row of the benchmarks must say, whatever it measures."""

from __future__ import annotations

import json
import math

from benchmarks.__main__ import measure
from benchmarks.lab.bench import Bench
from benchmarks.report import table
from benchmarks.rows import ROWS


def check(bench: Bench, name: str) -> None:
    """Measure a row."""
    outcome = measure(ROWS[name], bench)
    assert outcome.failure == ""
    assert outcome.figures
    for figure in outcome.figures:
        assert figure.spread.values and all(map(math.isfinite, figure.spread.values)), figure
        assert figure.verdict in table.VERDICTS
    json.dumps(outcome.to_json())
