"""The plots of a report, as SVG that takes its colors from the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import nan
from typing import TYPE_CHECKING, Any

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)

from rqueue.pipeline.number_words import duration
from rqueue.pipeline.plot_style import GRID, INK, figure, style, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bars", "busy", "histograms", "latency", "throughput", "with_gaps"]

Row = Mapping[str, Any]

GREEN, RED, ORANGE, GREY = "#4e9a06", "#a40000", "#ce5c00", "#888a85"
BLUE, VIOLET = "#3465a4", "#75507b"

VARIABLES = {
    GREEN: "good", RED: "bad", ORANGE: "warn", GREY: "mute", BLUE: "one", VIOLET: "two",
    INK: "ink", GRID: "grid",
}  # fmt: skip
"""Colors of the plots by the names that the page gives them, in light and in dark."""

WIDTH = 10.0

_S, _M, _H, _D = 1000, 60_000, 3_600_000, 86_400_000
ROUND = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, _S, 2 * _S, 5 * _S, 10 * _S, 20 * _S, 30 * _S,
    _M, 2 * _M, 5 * _M, 10 * _M, 20 * _M, 30 * _M, _H, 2 * _H, 5 * _H, 10 * _H, 20 * _H, 30 * _H,
    2 * _D, 5 * _D, 10 * _D, 20 * _D, 50 * _D, 100 * _D, 200 * _D,
)  # fmt: skip
"""Times in ms with a short name; every third one does where the axis is long."""

STEPS = (
    *(factor * 10**power for power in range(3) for factor in (1, 2, 5)),
    *(factor * unit for unit in (_S, _M) for factor in (1, 2, 5, 10, 15, 30)),
    *(factor * _H for factor in (1, 2, 3, 6, 12, 24, 48, 168, 720, 2160, 8760)),
)
"""Between two marks of an axis of times, in ms."""


def throughput(table: Sequence[Row], width_ms: int) -> str:
    """Jobs that ended, per second, and attempts that are to be repeated."""
    drawn = figure(WIDTH, 3.2)
    axes = drawn.add_subplot()
    style(axes, y="per second")
    times = [_time(row["from"]) for row in table]
    heights = [0.0] * len(table)
    step = width_ms / 86_400_000
    for name, color, label in (
        ("done", GREEN, "done"),
        ("failed", RED, "failed for good"),
        ("removed", GREY, "cancelled, purged, expired, displaced or moved"),
    ):
        values = [row[name] * 1000 / width_ms for row in table]
        if any(values):
            axes.bar(
                times,
                values,
                step,
                bottom=heights,
                align="edge",
                color=color,
                edgecolor=color,
                label=label,
                lw=0.4 if name == "done" else 0,  # an edge would show what is not there
            )
        heights = [low + value for low, value in zip(heights, values, strict=True)]
    retries = [row["retries"] * 1000 / width_ms for row in table]
    if any(retries):
        middles, known = with_gaps([time + step / 2 for time in times], retries, step, 0.0)
        axes.plot(middles, known, color=ORANGE, lw=1.6, label="failed, to be tried again")
    axes.set_ylim(bottom=0)
    _over_time(axes, times, step)
    _legend(axes)
    return _themed(drawn, "throughput")


def latency(table: Sequence[Row], what: str, width_ms: int, limit_ms: float | None) -> str:
    """Percentiles of `wait` or `run` over time; limit_ms: a line that is not to be crossed."""
    drawn = figure(WIDTH, 2.8)
    axes = drawn.add_subplot()
    style(axes, y=f"{what} time")
    known = [row for row in table if row[f"{what}_p50_ms"] is not None]
    step = width_ms / 86_400_000
    times = [_time(row["from"]) + step / 2 for row in known]
    axes.set_yscale("log")
    mark = "o" if len(known) < 40 else ""
    for name, color, label in (
        ("max", GREY, "maximum"),
        ("p99", ORANGE, "p99"),
        ("p95", VIOLET, "p95"),
        ("p50", BLUE, "median"),
    ):
        values = [max(row[f"{what}_{name}_ms"], 1) for row in known]
        axes.plot(
            *with_gaps(times, values, step, nan),
            color=color,
            lw=1.6,
            marker=mark,
            ms=3,
            label=label,
        )
    if limit_ms is not None:
        axes.axhline(
            max(limit_ms, 1), color=RED, lw=1, ls="--", label=f"objective {duration(limit_ms)}"
        )
    _durations(axes, "y")
    _over_time(axes, [_time(row["from"]) for row in table], step)
    _legend(axes)
    return _themed(drawn, what)


def histograms(tables: Mapping[str, Sequence[Row]], edges: Sequence[int]) -> str:
    """How many attempts waited, and ran, how long."""
    drawn = figure(WIDTH, 2.8)
    first: Axes | None = None
    for index, (what, color) in enumerate((("wait", BLUE), ("run", GREEN))):
        axes = drawn.add_subplot(1, 2, index + 1, sharex=first)
        first = first or axes
        style(axes, title=f"{what} time", y="attempts" if not index else "")
        table = tables[what]
        lows = [0.5, *edges]  # what is below 1 ms gets a bar too
        highs = [*edges, edges[-1] * 2]
        left = [lows[row["bin"]] for row in table]
        widths = [highs[row["bin"]] - lows[row["bin"]] for row in table]
        counts = [row["attempts"] for row in table]
        axes.bar(left, counts, widths, align="edge", color=color, edgecolor=GRID, lw=0.6)
        axes.set_xscale("log")
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(_count))
        _durations(axes, "x")
    return _themed(drawn, "spread")


def bars(table: Sequence[Row], parts: Sequence[tuple[str, str, str]], name: str) -> str:
    """A bar for each row, of time: `parts` are columns in ms, their colors and labels."""
    drawn = figure(WIDTH, 0.9 + 0.3 * len(table))
    axes = drawn.add_subplot()
    style(axes, x="time")
    places = range(len(table))
    lows = [0.0] * len(table)
    for column, color, label in parts:
        values = [row[column] for row in table]
        axes.barh(places, values, left=lows, color=color, label=label, height=0.66)
        lows = [low + value for low, value in zip(lows, values, strict=True)]
    _names(axes, table)
    step = next((step for step in STEPS if max(lows) <= 7 * step), STEPS[-1])
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms) if ms else "0"))
    _legend(axes)
    return _themed(drawn, name)


def busy(table: Sequence[Row]) -> str:
    """A bar for each worker: the share of its time in which it ran jobs."""
    drawn = figure(WIDTH, 0.9 + 0.3 * len(table))
    axes = drawn.add_subplot()
    style(axes, x="busy, of the time from its first job to its last")
    axes.barh(range(len(table)), [row["utilisation"] for row in table], color=BLUE, height=0.66)
    _names(axes, table)
    axes.set_xlim(0, max(1.0, *(row["utilisation"] for row in table)))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    return _themed(drawn, "workers")


# -- axes ------------------------------------------------------------------------------------------


def _time(iso: str) -> float:
    return float(date2num(datetime.fromisoformat(iso)))


def _over_time(axes: Axes, times: Sequence[float], step: float) -> None:
    axes.set_xlim(min(times), max(times) + step)
    locator = AutoDateLocator(tz=UTC, minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    axes.set_xlabel("time (UTC)")


def with_gaps(
    times: Sequence[float], values: Sequence[float], step: float, fill: float
) -> tuple[list[float], list[float]]:
    """The points of a line with `fill` where stretches are left out, which it would bridge."""
    at: list[float] = []
    found: list[float] = []
    for time, value in zip(times, values, strict=True):
        if at and time - at[-1] > 1.5 * step:
            at += [at[-1] + step, time - step]
            found += [fill, fill]
        at.append(time)
        found.append(value)
    return at, found


def _durations(axes: Axes, which: str) -> None:
    """A logarithmic axis of times: marks at those that have a round name."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    for ticks in (ROUND[::3], ROUND):
        seen = [tick for tick in ticks if low <= tick <= high]
        if len(seen) >= 3:
            break
    axis.set_major_locator(FixedLocator(seen))
    axis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _names(axes: Axes, table: Sequence[Row]) -> None:
    labels = [str(row["key"]) for row in table]
    axes.set_yticks(range(len(table)))
    axes.set_yticklabels([label if len(label) <= 40 else label[:39] + "…" for label in labels])
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def _legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        bars_first = sorted(
            zip(handles, labels, strict=True), key=lambda it: isinstance(it[0], Line2D)
        )
        handles, labels = map(list, zip(*bars_first, strict=True))
        axes.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(labels),
            frameon=False, borderaxespad=0.2, handlelength=1.4, fontsize=9,
        )  # fmt: skip


def _count(value: float, _: object) -> str:
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


# -- themes ----------------------------------------------------------------------------------------


def _themed(drawn: Figure, name: str) -> str:
    """The picture with the page's colors, no background, and ids of its own."""
    drawn.patch.set_visible(False)
    for axes in drawn.axes:
        axes.patch.set_visible(False)
    text = svg(drawn)
    for color, variable in VARIABLES.items():
        text = text.replace(color, f"var(--{variable})")
    text = text.replace("#000000", "var(--ink)")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'(xlink:href|href)="#', rf'\1="#{name}-', text)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'class="plot" role="img"', text, count=1)
