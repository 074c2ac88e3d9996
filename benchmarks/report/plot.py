"""The plot: every ratio with a target, as a share of what it must reach. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.rows.row import Figure, Outcome

HINT = "no plot: matplotlib is not installed (pip install rqueue[bench])"


def _score(figure: Figure, value: float) -> float:
    assert figure.target is not None
    must = figure.target.must
    if figure.target.more:
        return value / must
    return must / value if value > 0 else 10.0


def plot(outcomes: Sequence[Outcome], path: Path) -> str:
    """Draw it; returns what to say about it."""
    if find_spec("matplotlib") is None:
        return HINT
    import_module("matplotlib").use("svg")
    pyplot: Any = import_module("matplotlib.pyplot")
    bars: list[tuple[str, float, float, float]] = []
    for outcome in outcomes:
        for figure in outcome.figures:
            if figure.target is not None:
                scores = sorted(min(10.0, _score(figure, v)) for v in figure.spread.values)
                middle = min(10.0, _score(figure, figure.spread.middle))
                bars.append((f"{outcome.row}: {figure.what}", middle, scores[0], scores[-1]))
    if not bars:
        return "no plot: no figure has a target"
    bars.reverse()
    drawing, axes = pyplot.subplots(figsize=(10, 1 + 0.35 * len(bars)))
    places = range(len(bars))
    axes.barh(
        places,
        [middle for _, middle, _, _ in bars],
        color=["#2a9d4a" if middle >= 1 else "#c0392b" for _, middle, _, _ in bars],
        xerr=[
            [middle - low for _, middle, low, _ in bars],
            [high - middle for _, middle, _, high in bars],
        ],
        error_kw={"ecolor": "#555555", "capsize": 3},
    )
    axes.axvline(1, color="#222222", linewidth=1)
    axes.set_yticks(places, [name for name, *_ in bars], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(0.1, 12)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("times what it must reach (cut off at 10)")
    drawing.tight_layout()
    drawing.savefig(path)
    pyplot.close(drawing)
    return f"plot: {path.name}"
