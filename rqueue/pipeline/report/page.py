"""The page of a report: one HTML file with its styles and plots in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from rqueue.pipeline import number_words
from rqueue.pipeline.report import plots as plots

__all__ = ["page"]

_MOST_BARS = 12
_MOST_LINES = 50  # of a table on the page; the JSON document has more


def page(document: Mapping[str, Any]) -> str:
    """The page of a document that `rqueue.pipeline.report.report` made."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "duration": number_words.duration,
        "count": number_words.count,
        "share": number_words.share,
        "rate": number_words.rate,
        "moment": number_words.moment,
        "when": _clock(document),
        "soft": _soft,
    }
    text = (resources.files("rqueue.pipeline.report") / "page.html.j2").read_text(encoding="utf-8")
    tables = document["tables"]
    return environment.from_string(text).render(
        d=document,
        f=document["figures"],
        t=tables,
        most=_MOST_LINES,
        wasteful=_wasteful(tables["tasks"]),
        plots={name: Markup(svg) for name, svg in _plots(document).items()},
    )


def _clock(document: Mapping[str, Any]) -> Callable[[str | None], str]:
    """Times of the tables: without the day where all are of one."""
    one_day = (document["first"] or "")[:10] == (document["last"] or "")[:10]
    return lambda iso: number_words.moment(iso)[11:] or "–" if one_day else number_words.moment(iso)


def _soft(name: object) -> Markup:
    """A dotted name that may be broken into lines where its parts meet."""
    text = str(escape(name))
    return Markup(re.sub(r"([._/:-])(?=\w)", r"\1<wbr>", text))  # escaped before


def _wasteful(tasks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    wasted = [row for row in tasks if row["wasted_ms"]]
    return sorted(wasted, key=lambda row: -row["wasted_ms"])[:_MOST_LINES]


def _plots(document: Mapping[str, Any]) -> dict[str, str]:
    """The plots for which there is something to draw."""
    tables, width = document["tables"], document["bucket_ms"]
    limits = document["objectives"]
    found = {}
    if tables["time"]:
        found["throughput"] = plots.throughput(tables["time"], width)
    if any(row["wait_p50_ms"] is not None for row in tables["time"]):
        for what in ("wait", "run"):
            found[what] = plots.latency(tables["time"], what, width, limits[f"{what}_ms"])
        spread = {what: tables[f"{what}_histogram"] for what in ("wait", "run")}
        found["spread"] = plots.histograms(spread, document["histogram_edges_ms"])
    ran = [_useful(row) for row in tables["by"] if row["run_ms"]][:_MOST_BARS]
    if ran:
        parts = [("useful_ms", plots.GREEN, "useful"), ("wasted_ms", plots.ORANGE, "wasted")]
        found["by"] = plots.bars(ran, parts, "by")
    present = [
        {**row, "key": row["worker"]} for row in tables["workers"] if row["utilisation"] is not None
    ]
    if present:
        found["workers"] = plots.busy(present[:_MOST_BARS])
    shares = [{**row, "key": row["group"]} for row in tables["groups"] if row["run_ms"]]
    if shares:
        parts = [("run_ms", plots.BLUE, "run time")]
        found["groups"] = plots.bars(shares[:_MOST_BARS], parts, "groups")
    return found


def _useful(row: Mapping[str, Any]) -> dict[str, Any]:
    key = "(none)" if row["key"] is None else row["key"]
    return {**row, "key": key, "useful_ms": row["run_ms"] - row["wasted_ms"]}
