"""`rqueue pipeline archive`: history into a lake of Parquet files."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.output import echo, json_option, print_line, rate, span
from rqueue.cli.pipeline.history_options import (
    cluster_option,
    lake_option,
    queue_option,
    require_server,
    source_access,
    spark_failure,
    spark_options,
    spark_session,
)
from rqueue.cli.pipeline.inputs import check_name
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.pipeline.archive.archiver import Batch, Idle, Notice
    from rqueue.pipeline.archive.compact import Merged
    from rqueue.pipeline.archive.lag import Lag


@click.command()
@lake_option
@queue_option
@click.option("--once", is_flag=True, help="End when all is archived that is there now; for cron.")
@click.option(
    "--interval", default="10s", show_default=True, metavar="DURATION", help="Between batches."
)
@click.option(
    "--patience",
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for Redis, or try again what fails, without any progress.",
)
@click.option(
    "--max-rows", default=1_000_000, show_default=True, metavar="N", help="Of one batch, at most."
)
@click.option(
    "--compact/--no-compact",
    default=True,
    show_default=True,
    help="Merge the small files of days that are over.",
)
@click.option(
    "--allow-loss",
    is_flag=True,
    help="Go on where Redis has trimmed rows before they were archived.",
)
@cluster_option
@spark_options
@json_option
@connection_options
@pass_target
def archive(
    target: Target,
    /,
    lake: str | None,
    queues: tuple[str, ...],
    once: bool,
    interval: str,
    patience: str,
    max_rows: int,
    compact: bool,
    allow_loss: bool,
    cluster: bool,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Carry history into a lake of Parquet files.

    Adds the history of jobs to the lake, each row once, however and whenever the archiver is
    killed: start it again. Goes on until Ctrl-C or SIGTERM, and ends behind the batch that is under
    way (a second signal ends it at once; nothing is lost). With --once it ends when it has caught
    up.

    Waits for a Redis that went away, and starts again by itself what fails; it gives up after
    --patience without any progress, or where a person has to decide.

    Prints a line for each batch: rows, the rate, and the lag, that is how many rows are in Redis
    only and how old the oldest is; a lag that grows calls for more cores or a longer history
    (history_rows_max: rows a second of the queue, times the longest outage). While nothing comes, a
    line a minute. With --json a document per line.

    With --once from cron, Redis has to keep what comes in between: every ten minutes the 200,000
    rows that it keeps by default last for 333 rows a second of each queue.

    \b
    Examples:
      rqueue pipeline archive --lake /data/lake
      rqueue pipeline archive --lake s3a://bucket/lake --queue mail --queue pdf
      */10 * * * *  rqueue pipeline archive --lake /data/lake --once
    """  # noqa: D301
    from rqueue.errors import RedisUnavailable
    from rqueue.model.times import parse_duration

    if lake is None:
        raise click.UsageError("--lake is missing: the folder or URL to archive into")
    check_name(lake)
    if max_rows < 1:
        raise click.UsageError("--max-rows is at least 1")
    every = parse_duration(interval, "interval")
    patient = parse_duration(patience, "patience")
    with contextlib.ExitStack() as stack:
        access = stack.enter_context(source_access(target, cluster))
        with contextlib.suppress(RedisUnavailable):  # it may be there when Spark is: run() waits
            require_server(access)
        spark = stack.enter_context(spark_session(master, conf))
        from rqueue.pipeline.archive.archiver import archive as run

        options = access.options | {"patience": "0s"}  # it waits itself, and says so
        options["maxRowsPerBatch"] = str(max_rows)
        options["failOnDataLoss"] = "false" if allow_loss else "true"
        if queues:
            options["queues"] = ",".join(name.replace(",", "\\,") for name in queues)
        with stop_signals() as stop:
            done = run(
                spark,
                lake,
                options,
                once=once,
                interval_s=every,
                patience_s=patient,
                compact=compact,
                stop=stop,
                on_batch=batch_line if as_json else batch_text,
                on_merged=merged_line if as_json else merged_text,
                on_notice=notice_line if as_json else notice_text,
                on_idle=idle_line if as_json else idle_text,
            )
    if as_json:
        print_line({"event": "end", "rows": done.rows, "batches": done.batches})
    else:
        echo(f"archived {many(done.rows, 'row')}")


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; the second one is as usual."""
    stop = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, _frame: object) -> None:
        stop.set()
        restore()

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    for one in (signal.SIGINT, signal.SIGTERM):
        before[one] = signal.getsignal(one)
        signal.signal(one, ask)
    try:
        yield stop
    finally:
        restore()


def batch_text(batch: Batch) -> None:
    """A batch, for people."""
    speed = rate(batch.rows / batch.seconds) if batch.seconds else ""
    echo(
        f"{datetime.now():%H:%M:%S}  batch {batch.number}  {many(batch.rows, 'row')}  {speed}  "
        f"lag {_lag(batch.lag)}  total {batch.total:,}"
    )


def batch_line(batch: Batch) -> None:
    """A batch, for programs."""
    print_line(
        {
            "event": "batch",
            "batch": batch.number,
            "rows": batch.rows,
            "files": batch.files,
            "seconds": round(batch.seconds, 3),
            "total": batch.total,
            "lag_rows": batch.lag.rows,
            "lag_s": round(batch.lag.seconds, 3),
        }
    )


def idle_text(idle: Idle) -> None:
    """Nothing came, for people."""
    echo(f"{datetime.now():%H:%M:%S}  nothing new  lag {_lag(idle.lag)}  total {idle.total:,}")


def idle_line(idle: Idle) -> None:
    """Nothing came, for programs."""
    print_line(
        {
            "event": "idle",
            "total": idle.total,
            "lag_rows": idle.lag.rows,
            "lag_s": round(idle.lag.seconds, 3),
        }
    )


def notice_text(notice: Notice) -> None:
    """Say what is tried again, for people: on stderr."""
    said = {
        "waiting": f"{_why(notice)}; trying again",
        "again": f"going on after {span(notice.seconds * 1000)}",
        "checkpoint": f"Spark's checkpoint is broken, it is at {notice.place} now; going on, for"
        " the lake knows what it holds",
    }[notice.kind]
    echo(f"{datetime.now():%H:%M:%S}  {said}", err=True)


def notice_line(notice: Notice) -> None:
    """Say what is tried again, for programs."""
    document: dict[str, Any] = {"event": notice.kind}
    if notice.error is not None:
        document["error"] = _why(notice)
    if notice.place:
        document["place"] = notice.place
    else:
        document["seconds"] = round(notice.seconds, 3)
    print_line(document)


def _why(notice: Notice) -> str:
    """The error in one line."""
    if notice.error is None:
        return ""
    failure = spark_failure(notice.error)
    return failure.message if failure is not None else str(notice.error)


def _lag(lag: Lag) -> str:
    return f"{many(lag.rows, 'row')}, {span(lag.seconds * 1000)}" if lag.rows else "none"


def merged_text(merged: Merged) -> None:
    """A folder that was compacted, for people."""
    echo(
        f"{datetime.now():%H:%M:%S}  compacted {merged.date} of '{merged.queue}': "
        f"{many(merged.before, 'file')} to {merged.after}, {many(merged.rows, 'row')}"
    )


def merged_line(merged: Merged) -> None:
    """A folder that was compacted, for programs."""
    print_line(
        {
            "event": "compacted",
            "date": merged.date.isoformat(),
            "queue": merged.queue,
            "files_before": merged.before,
            "files_after": merged.after,
            "rows": merged.rows,
        }
    )
