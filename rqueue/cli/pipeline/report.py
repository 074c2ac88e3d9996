"""`rqueue pipeline report`: a page about a stretch of time."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.dead import moment
from rqueue.cli.exit_codes import USAGE, Failure
from rqueue.cli.output import echo, json_option, print_facts, print_json, rate, span
from rqueue.cli.pipeline.history_options import (
    cluster_option,
    in_order,
    lake_option,
    queue_option,
    range_options,
    require_server,
    source_access,
    spark_options,
    spark_session,
)
from rqueue.cli.pipeline.inputs import check_lake, check_output, write_output
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.pipeline.report.report import Report

DAY_MS = 86_400_000
DEFAULT_PAGE = "rqueue-report.html"


@click.command()
@lake_option
@range_options
@click.option(
    "--by",
    default="task",
    show_default=True,
    metavar="WHAT",
    help="What one table tells apart: task, queue, group, share, worker, label, or the values of"
    " one: label:NAME (fairness is between them then).",
)
@queue_option
@click.option("--slo-wait", metavar="DURATION", help="Count the attempts that waited longer.")
@click.option("--slo-run", metavar="DURATION", help="Count the attempts that ran longer.")
@click.option("--live/--no-live", default=None, help="Read what only Redis has yet.")
@click.option(
    "--out",
    metavar="FILE",
    help=f"The page; - for stdout. Default: {DEFAULT_PAGE}, and none with --json or --parquet.",
)
@click.option(
    "--parquet",
    metavar="FOLDER",
    help="Write each table there; tables of an earlier report are replaced.",
)
@cluster_option
@spark_options
@json_option
@connection_options
@pass_target
def report(
    target: Target,
    /,
    lake: str | None,
    since: str | None,
    until: str | None,
    by: str,
    queues: tuple[str, ...],
    slo_wait: str | None,
    slo_run: str | None,
    live: bool | None,
    out: str | None,
    parquet: str | None,
    cluster: bool,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a report of the lake: times, failures, fairness.

    One HTML page that needs nothing else: throughput, wait and run times, retries, errors, dead
    letters, how busy the workers were, fairness between groups, broken objectives, and where the
    time went; of the last day unless --from and --to say otherwise.

    Reads the lake, and from where it ends what Redis has, so that the report is up to date; no row
    counts twice. With --no-live, or where no server is known, the lake alone; without --lake, Redis
    alone.

    \b
    Examples:
      rqueue pipeline report --lake /data/lake
      rqueue pipeline report --lake /data/lake --from 7d --by label:tenant --out week.html
      rqueue pipeline report --from 1h --json | jq .figures
    """  # noqa: D301
    from rqueue.model.times import parse_duration

    end_ms = moment(until, "to") or round(time.time() * 1000)
    start_ms = moment(since, "from") or end_ms - DAY_MS
    in_order(start_ms, end_ms, "--from", "--to")
    wait_s = None if slo_wait is None else parse_duration(slo_wait, "slo-wait")
    run_s = None if slo_run is None else parse_duration(slo_run, "slo-run")
    page = out or (None if as_json or parquet else DEFAULT_PAGE)
    if as_json and page == "-":
        raise click.UsageError("--json and --out - both want stdout")
    check_by(by)
    check_output(page, "--out")
    check_lake(lake, master, conf)
    with contextlib.ExitStack() as stack:
        server = _server(target, cluster, stack, lake, live)
        spark = stack.enter_context(spark_session(master, conf))
        from rqueue.pipeline.missing import missing
        from rqueue.pipeline.report.report import Objectives
        from rqueue.pipeline.report.report import report as make
        from rqueue.pipeline.table import history
        from rqueue.spark.access import Access
        from rqueue.spark.options import JobsRead, read_options

        rows = history(spark, start_ms, end_ms, lake=lake, live=server, queues=queues)
        lacking = missing(spark, start_ms, end_ms, lake=lake, live=server, queues=queues)
        made = make(
            rows,
            start_ms,
            end_ms,
            by=by,
            objectives=Objectives(wait_s, run_s),
            sources=_sources(lake, server),
            queues=queues,
            access=None if server is None else Access.of(read_options(JobsRead, server)),
            missing=lacking,
        )
        if parquet is not None:
            made.write_parquet(parquet)
        if page == "-":
            click.echo(made.html())
        elif page is not None:
            write_output(page, made.html())
    if as_json:
        print_json(made.document)
    elif page != "-":
        _summary(made, page, parquet)


def check_by(dimension: str) -> None:
    """Refuse what no table can tell apart. Raises ConfigError."""
    from rqueue.pipeline.report.metrics import label_of

    label_of(dimension)


def _server(
    target: Target,
    cluster: bool,
    stack: contextlib.ExitStack,
    lake: str | None,
    live: bool | None,
) -> dict[str, str] | None:
    """Options of the source for the newest rows; None when the lake alone is read."""
    if live is False:
        if lake is None:
            raise click.UsageError("--no-live needs a --lake")
        return None
    try:
        access = stack.enter_context(source_access(target, cluster))
    except Failure as error:
        # no server is named anywhere; the lake will do, unless it was asked for
        if lake is None or live or error.code != USAGE:
            raise
        return None
    require_server(access)
    return access.options


def _sources(lake: str | None, server: dict[str, str] | None) -> list[str]:
    found = [] if lake is None else [f"the lake {lake}"]
    if server is not None:
        place = f"Redis at {server['url']}"
        found.append(f"{place}, from where the lake ends" if found else place)
    return found


def _summary(made: Report, page: str | None, parquet: str | None) -> None:
    """The key figures, for people."""
    figures = made.document["figures"]
    if not figures["rows"]:
        echo("no history in this range", err=True)

    def times(name: str) -> str:
        known = figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"]
        return "" if None in known else f"median {span(known[0])}, p95 {span(known[1])}"

    per_second, per_job = figures["per_second"], figures["amplification"]
    facts: dict[str, Any] = {
        "queues": ", ".join(made.document["queues"]),
        "done": f"{many(figures['done'], 'job')}, {rate(per_second)}" if per_second else "none",
        "failed": many(figures["failed"], "job"),
        "wait": times("wait"),
        "run": times("run"),
        "attempts": "" if per_job is None else f"{per_job:.2f} per job",
        "page": page or "",
        "tables": parquet or "",
    }
    print_facts(facts)
    for warning in made.document["warnings"]:
        echo(f"warning: {warning}", err=True)
