"""The plot of a plan: the wait against workers, by the model and by the simulations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from rqueue.pipeline.plan.plan import Plan, Simulated
from rqueue.pipeline.plot_style import COLORS, INK, figure, style, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plan_svg"]


def plan_svg(plans: Sequence[Plan]) -> str:
    """One picture with a curve for each pool: p95 (or what was asked for) of the wait against
    workers, with the target and the answer."""
    drawn = figure(8.0, 4.4 * max(1, len(plans)))
    for index, one in enumerate(plans):
        _draw(drawn.add_subplot(len(plans), 1, index + 1), one)
    return svg(drawn)


def _draw(axes: Axes, one: Plan) -> None:
    target = one.goal.target
    curve = one.curve()
    modelled = [(p.workers, p.model) for p in curve if math.isfinite(p.model)]
    if modelled:
        axes.plot(*zip(*modelled, strict=True), "-", color=COLORS[0], label="model (Allen-Cunneen)")
    for values, color, mark, label in (
        (
            [(p.workers, p.fitted) for p in curve if p.fitted],
            COLORS[1],
            "o",
            "simulation, arrivals of the measured rate and burstiness",
        ),
        (
            [(p.workers, p.measured) for p in curve if p.measured],
            COLORS[2],
            "s",
            "simulation, the measured arrivals",
        ),
    ):
        _simulated(axes, values, color, mark, label)
    axes.axhline(target, color=COLORS[4], linestyle="--", linewidth=1)
    axes.annotate(
        f"target {_seconds(target)}",
        (1, target),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        color=COLORS[4],
    )
    axes.axvline(one.workers, color=INK, linestyle=":", linewidth=1)
    axes.annotate(
        f"{one.workers} workers",
        (one.workers, 0),
        xycoords=("data", "axes fraction"),
        xytext=(4, 4),
        textcoords="offset points",
    )
    # Logarithmic, but for the lowest part: a wait of nothing has its place too.
    linear = target / 100
    axes.set_yscale("symlog", linthresh=linear, linscale=0.5)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: "" if 0 < value < linear else _seconds(value))
    )
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    load = one.measured.load
    style(
        axes,
        title=f"{_queues(one)}: {load.rate:.3g} jobs a second of "
        f"{_seconds(load.run)}, {load.erlangs:.3g} workers busy on average",
        x="workers",
        y=f"p{one.goal.quantile * 100:g} of the wait",
    )
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=8)


def _queues(one: Plan) -> str:
    names = one.measured.queues
    return f"Queue{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _simulated(
    axes: Axes, values: list[tuple[int, Simulated]], color: str, mark: str, label: str
) -> None:
    if not values:
        return
    waits = [its.wait for _, its in values]
    below = [min(its.margin, its.wait) for _, its in values]
    axes.errorbar(
        [workers for workers, _ in values],
        waits,
        yerr=[below, [its.margin for _, its in values]],
        fmt=mark,
        color=color,
        markersize=4,
        elinewidth=1,
        capsize=2,
        label=label,
    )


def _seconds(value: float) -> str:
    if value == 0:
        return "0"
    if value < 1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if value < 120 else f"{value / 60:.3g} min"
