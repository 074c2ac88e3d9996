"""`rqueue pipeline load`: jobs from files or a database."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rqueue.cli.enqueue import pairs
from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.output import echo, json_option, print_json, print_line
from rqueue.cli.pipeline.history_options import (
    cluster_option,
    require_server,
    source_access,
    spark_options,
    spark_session,
)
from rqueue.cli.pipeline.inputs import check_files
from rqueue.cli.pipeline.meter import Meter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 5


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--format",
    "form",
    default="parquet",
    show_default=True,
    metavar="FORMAT",
    help="csv, json, parquet, orc, jdbc, or any other source that Spark knows.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of that source; may be repeated. env:NAME is read from the environment.",
)
@click.option("--schema", metavar="DDL", help="Its columns: 'id BIGINT, name STRING'.")
@click.option("--task", metavar="NAME", help="Task of all rows.")
@click.option("--queue", "-q", metavar="QUEUE", help="Queue of all rows.")
@click.option("--args-columns", metavar="A,B", help="Positional arguments, in this order.")
@click.option(
    "--kwargs-columns",
    metavar="C,D",
    help="Arguments by name. Default: all columns that nothing else names; '' for none.",
)
@click.option("--id-column", metavar="COLUMN", help="The jobs' ids. Default: made of the rows.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=SQL",
    help="queue, task, level, delay, at, max_deliveries, max_crashes, ttl, time_limit,"
    " soft_time_limit, keep, headers or labels of each row; may be repeated.",
)
@click.option(
    "--name", metavar="NAME", help="Of this load: the same one again enqueues nothing twice."
)
@click.option(
    "--bad-rows",
    metavar="FOLDER",
    help="Rows that are no jobs go there, with the reason. Default: load-NAME-bad here; on a"
    " cluster they fail the load.",
)
@click.option(
    "--partitions",
    default=16,
    show_default=True,
    metavar="N",
    help="Tasks of Spark; to be the same each time under one name.",
)
@click.option(
    "--remember",
    default="7d",
    show_default=True,
    metavar="DURATION",
    help="So long Redis knows what was loaded.",
)
@click.option("--dry-run", is_flag=True, help="Enqueue nothing: count the rows, show some jobs.")
@cluster_option
@spark_options
@json_option
@connection_options
@pass_target
def load(
    target: Target,
    /,
    paths: tuple[str, ...],
    form: str,
    options: tuple[str, ...],
    schema: str | None,
    task: str | None,
    queue: str | None,
    args_columns: str | None,
    kwargs_columns: str | None,
    id_column: str | None,
    columns: tuple[str, ...],
    name: str | None,
    bad_rows: str | None,
    partitions: int,
    remember: str,
    dry_run: bool,
    cluster: bool,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Enqueue the rows of files or a database.

    Each row becomes a job. Rows that are no jobs, also those for which the SQL of a --column has no
    value (int(age) of 'x'), are put aside with the reason, and make the exit code 1. Stopped or
    killed, the same command with the same --name goes on; run again later, it enqueues only rows
    that are new. The order of the rows is lost.

    \b
    Examples:
      rqueue pipeline load people.csv --format csv --option header=true --task app.greet -q mail
      rqueue pipeline load s3a://bucket/orders/ --task app.charge -q pay --args-columns order_id \\
        --kwargs-columns amount,currency --id-column order_id --column 'level=int(vip) + 4'
      rqueue pipeline load --format jdbc --option url=jdbc:postgresql://db/shop \\
        --option dbtable=users --option password=env:PGPASSWORD --task app.sync -q sync --name may
    """  # noqa: D301
    from rqueue.model.ids import new_id

    given = {key: _value(text) for key, text in pairs(options, "--option")}
    more = dict(pairs(columns, "--column"))
    if queue is None and "queue" not in more:
        raise click.UsageError("where to? --queue NAME, or --column queue=SQL")
    if task is None and "task" not in more:
        raise click.UsageError("which task? --task NAME, or --column task=SQL")
    check_files(paths, master, conf)
    run = name or new_id()
    with source_access(target, cluster) as access:
        require_server(access)
        with spark_session(master, conf) as spark:
            from rqueue.pipeline.load import Columns, jobs_of
            from rqueue.pipeline.load import load as enqueue

            source = read_source(spark, form, given, schema, paths)
            wanted = Columns(
                queue=queue,
                task=task,
                args=_names(args_columns) or (),
                kwargs=_names(kwargs_columns),
                id=id_column,
                more=more,
            )
            jobs = jobs_of(source, wanted)
            if dry_run:
                return _show(jobs, as_json)
            if bad_rows is None and str(spark.sparkContext.master).startswith("local"):
                bad_rows = os.path.abspath(f"load-{run}-bad")
            try:
                with Meter("rows", quiet=as_json) as meter:
                    done = enqueue(
                        jobs,
                        access,
                        run,
                        bad_rows=bad_rows,
                        partitions=partitions,
                        remember=remember,
                        on_progress=meter.update,
                    )
            except BaseException:
                say(f"not all of it is done; the same command goes on with --name {run}")
                raise
    if as_json:
        print_json({**asdict(done), "bad_rows": bad_rows if done.bad else None})
    else:
        said = f"load {run}: {many(done.jobs, 'job')} enqueued of {many(done.rows, 'row')}"
        if done.repeated:
            said += f", {done.repeated:,} were loaded before"
        if done.known:
            said += f", {done.known:,} have ids that the queue knew"
        echo(said)
        if done.bad:
            say(f"{_no_jobs(done.bad)}: {bad_rows}")
    return NEGATIVE if done.bad else OK


def read_source(
    spark: SparkSession,
    form: str,
    options: dict[str, str],
    schema: str | None,
    paths: tuple[str, ...],
) -> DataFrame:
    """The source as a table."""
    reader = spark.read.format(form).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(list(paths)) if paths else reader.load()


def _show(jobs: DataFrame, as_json: bool) -> int:
    import orjson
    from pyspark.sql.functions import struct, to_json

    as_text = to_json(struct(*(f"`{name}`" for name in jobs.columns)))
    rows = jobs.count()
    bad = jobs.where("problem IS NOT NULL").count() if "problem" in jobs.columns else 0
    some = [orjson.loads(str(row[0])) for row in jobs.limit(SHOWN).select(as_text).collect()]
    if as_json:
        print_json({"rows": rows, "jobs": some, "bad": bad, "dry_run": True})
        return OK
    if bad:
        say(f"{_no_jobs(bad)}: a --column has no value")
    echo(f"would enqueue {many(rows - bad, 'job')}, for instance:")
    for one in some:
        print_line(one)
    return OK


def _no_jobs(rows: int) -> str:
    return "1 row is no job" if rows == 1 else f"{rows:,} rows are no jobs"


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(text: str) -> str:
    """An option's value; `env:NAME` stands for a variable, so that a password is in no process
    list."""
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    if name not in os.environ:
        raise click.BadParameter(f"there is no variable {name}", param_hint="--option")
    return os.environ[name]
