"""A report of history: figures and tables of a stretch of time, as a document, a page or Parquet.

Everything in it is counted by `rqueue.pipeline.report.metrics`; the document is what `--json`
prints, and all that the page is drawn from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rqueue.errors import ConfigError
from rqueue.pipeline.missing import Missing
from rqueue.pipeline.report import metrics
from rqueue.protocol.commands.job_notes import notes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rqueue.spark.access import Access

__all__ = ["WIDTHS_MS", "Objectives", "Report", "bucket_width", "report"]

_S, _M, _H, _D = 1000, 60_000, 3_600_000, 86_400_000
WIDTHS_MS = (
    _S, 2 * _S, 5 * _S, 10 * _S, 30 * _S, _M, 2 * _M, 5 * _M, 10 * _M, 30 * _M,
    _H, 2 * _H, 6 * _H, 12 * _H, _D, 7 * _D, 28 * _D,
)  # fmt: skip
"""How wide a stretch of the tables over time may be."""

_STRETCHES = 100  # of a plot, at most
_MOST_ROWS = 1000  # of a table in the document; the Parquet tables are whole
_MESSAGES = 100  # dead letters that are looked up in Redis for what they died of


@dataclass(frozen=True, slots=True)
class Objectives:
    """How long a job may wait, and run, in seconds; None: no objective."""

    wait_s: float | None = None
    run_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("slo-wait", self.wait_s), ("slo-run", self.run_s)):
            if value is not None and value < 0:
                raise ConfigError(name, f"{value:g} s is below 0")


@dataclass(frozen=True)
class Report:
    """The findings of `report`: the document, the tables it is taken from, and the rows of
    these."""

    document: dict[str, Any]
    tables: Mapping[str, DataFrame]
    rows: DataFrame

    def close(self) -> None:
        """Let go of the rows, which Spark has kept for `write_parquet`."""
        self.rows.unpersist()

    def json(self) -> str:
        """The document as JSON. Its names and units are those of `docs/spark.md`."""
        return json.dumps(self.document, ensure_ascii=False)

    def html(self) -> str:
        """A page that needs nothing else: styles and plots are in it."""
        from rqueue.pipeline.report.page import page

        return page(self.document)

    def write_parquet(self, folder: str) -> None:
        """Each table as Parquet in a folder of its name; what was there before is replaced."""
        for name, table in self.tables.items():
            table.write.mode("overwrite").parquet(f"{folder.rstrip('/')}/{name}")


def report(
    rows: DataFrame,
    start_ms: int,
    end_ms: int,
    *,
    by: str = "task",
    objectives: Objectives | None = None,
    sources: Sequence[str] = (),
    queues: Sequence[str] = (),
    access: Access | None = None,
    missing: Sequence[Missing] = (),
) -> Report:
    """Count what happened in [start_ms, end_ms).

    rows: history (see `rqueue.pipeline.table`). by: a dimension of `metrics.DIMENSIONS`, or
    `label:NAME`, whose values are then what fairness is between. sources:
    where the rows come from, in words; queues: those that were asked for. access: of the Redis that
    is asked for what killed jobs whose cause history does not hold. missing: what the rows lack
    (`rqueue.pipeline.missing`), which the document then says. Raises ConfigError.
    """
    metrics.label_of(by)  # what it is not, is said
    if end_ms <= start_ms:
        raise ConfigError("to", "the range is empty: it ends before it begins")
    objectives = objectives or Objectives()
    prepared = metrics.prepare(rows, start_ms, end_ms).cache()
    try:
        made = _counted(prepared, (start_ms, end_ms), by, objectives, sources, queues, access)
    except BaseException:
        prepared.unpersist()
        raise
    made.document["missing"] = [asdict(gap) for gap in missing]
    absent = sorted(set(queues) - set(made.document["queues"]))
    made.document["warnings"] = _warnings(made.document["figures"], missing, absent)
    return made


def _warnings(
    figures: Mapping[str, Any], missing: Sequence[Missing], absent: Sequence[str]
) -> list[str]:
    """The limits of the figures, a sentence each. absent: queues that were asked for."""
    said = [str(gap) for gap in missing]
    said += [f"queue '{name}' has no history in this range" for name in absent]
    if untimed := figures["untimed"]:
        attempts = "attempt was" if untimed == 1 else "attempts were"
        said.append(
            f"{untimed:,} {attempts} killed, and when they began is not known: they count as "
            "attempts, their time is in no figure"
        )
    return said


def _counted(
    rows: DataFrame,
    span: tuple[int, int],
    by: str,
    objectives: Objectives,
    sources: Sequence[str],
    queues: Sequence[str],
    access: Access | None,
) -> Report:
    [ends] = rows.selectExpr(
        "min(at_ms) AS first", "max(at_ms) AS last", "array_sort(collect_set(queue)) AS queues"
    ).collect()
    first, last = (ends["first"], ends["last"]) if ends["first"] is not None else span
    width = bucket_width(last - first + 1)
    wait_ms, run_ms = (
        None if limit is None else limit * 1000 for limit in (objectives.wait_s, objectives.run_s)
    )
    label = metrics.label_of(by)
    tables = {
        "totals": metrics.totals(rows),
        "outcomes": metrics.outcomes(rows),
        "time": metrics.over_time(rows, first // width * width, width),
        "by": metrics.by_dimension(rows, by),
        "tasks": metrics.by_dimension(rows, "task"),
        "wait_histogram": metrics.histogram(rows, "wait_ms"),
        "run_histogram": metrics.histogram(rows, "run_ms"),
        "errors": metrics.errors(rows),
        "dead": metrics.dead_letters(rows),
        "workers": metrics.workers(rows, *span),
        "groups": metrics.groups(rows, label),
        "fairness": metrics.fairness(rows, label),
        "slo": metrics.breaches(rows, wait_ms, run_ms),
        "slowest": metrics.slowest(rows),
    }
    found = {
        name: [row.asDict(recursive=True) for row in table.limit(_MOST_ROWS).collect()]
        for name, table in tables.items()
        if name != "tasks" or by != "task"
    }
    found.setdefault("tasks", found["by"])
    if access is not None:
        _look_up_messages(found["dead"], access)
    [totals], [fairness] = found.pop("totals"), found.pop("fairness")
    document = {
        "version": 1,
        "made": _iso(datetime.now(UTC).timestamp() * 1000),
        "from": _iso(span[0]),
        "to": _iso(span[1]),
        "first": _iso(ends["first"]),
        "last": _iso(ends["last"]),
        "queues": ends["queues"],
        "asked_queues": list(queues),
        "sources": list(sources),
        "by": by,
        "fair_between": "groups" if label is None else f"values of label '{label}'",
        "bucket_ms": width,
        "objectives": {"wait_ms": wait_ms, "run_ms": run_ms},
        "figures": _figures(totals, found, fairness, last - first + 1),
        "histogram_edges_ms": list(metrics.HISTOGRAM_EDGES),
        "tables": {name: [_dated(row) for row in table] for name, table in found.items()},
    }
    return Report(document, tables, rows)


def bucket_width(length_ms: int) -> int:
    """The width of the stretches into which so long a time is divided, in ms."""
    return next((w for w in WIDTHS_MS if length_ms <= w * _STRETCHES), WIDTHS_MS[-1])


def _figures(
    totals: dict[str, Any],
    tables: Mapping[str, list[dict[str, Any]]],
    fairness: dict[str, Any],
    length_ms: int,
) -> dict[str, Any]:
    """The numbers at the top. per_second: jobs done, between the first row and the last one (a
    second at least)."""
    ended = totals["done"] + totals["failed"]
    measured = [row for row in tables["workers"] if row["utilisation"] is not None]
    busy = sum(row["busy_ms"] for row in measured)
    present = sum(row["present_ms"] for row in measured)
    attempts = sum(row["attempts"] for row in tables["slo"])

    def kept(name: str) -> float | None:
        broken = [row[name] for row in tables["slo"] if row[name] is not None]
        return 1 - sum(broken) / attempts if broken and attempts else None

    return {
        **totals,
        **fairness,
        "per_second": totals["done"] * 1000 / max(length_ms, 1000) if totals["rows"] else None,
        "failed_share": totals["failed"] / ended if ended else None,
        "wasted_share": totals["wasted_ms"] / totals["run_ms"] if totals["run_ms"] else None,
        "utilisation": busy / present if present else None,
        "wait_kept": kept("wait_breaches"),
        "run_kept": kept("run_breaches"),
    }


def _look_up_messages(dead: list[dict[str, Any]], access: Access) -> None:
    """Fill in what killed the newest job of each kind, while its dead letter is in Redis."""
    wanted = [row for row in dead if row["message"] is None and row["jobs"]][:_MESSAGES]
    if not wanted:
        return
    with access.reader() as reader:
        for row in wanted:
            job = row["jobs"][0]
            (text,) = reader.run(notes_of(access.keys(job["queue"]), "causes", [job["id"]]))
            try:
                cause = json.loads(text) if text else {}
            except ValueError:
                cause = {}
            if isinstance(cause, dict):
                row["message"] = cause.get("message") or None


_MOMENTS = {"from_ms": "from", "first_ms": "first", "last_ms": "last", "finished_ms": "finished"}


def _dated(row: dict[str, Any]) -> dict[str, Any]:
    """Moments as ISO times, under their names without the unit."""
    return {
        _MOMENTS.get(name, name): _iso(value) if name in _MOMENTS else value
        for name, value in row.items()
    }


def _iso(ms: float | None) -> str | None:
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
