"""Plots as SVG text: one style, no display needed, the same bytes for the same data."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLORS", "GRID", "INK", "figure", "style", "svg"]

COLORS = ("#3465a4", "#ce5c00", "#4e9a06", "#75507b", "#a40000", "#c4a000", "#06989a", "#555753")
"""Told apart in grey and by most of those who do not see red and green apart, in this order."""

INK, GRID = "#2e3436", "#d3d7cf"

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the page's font
    "svg.hashsalt": "rqueue",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def figure(width: float = 8.0, height: float = 4.5) -> Figure:
    """An empty figure, inches wide and high."""
    with matplotlib.rc_context(_SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")


def style(axes: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Names for the axes, a light grid behind the data, no box around it."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def svg(drawn: Figure) -> str:
    """The figure as an `<svg>` element, without the XML prologue: fit for a page or a file."""
    buffer = io.StringIO()
    with matplotlib.rc_context(_SETTINGS):
        drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
