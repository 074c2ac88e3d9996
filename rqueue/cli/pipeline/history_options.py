"""Shared by the commands of `rqueue pipeline`: options, the session, Spark's errors."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rqueue.cli.dead import moment
from rqueue.cli.exit_codes import MISSING, NEGATIVE, USAGE, Failure
from rqueue.cli.failures import exit_code
from rqueue.cli.filled import filled
from rqueue.cli.pipeline.inputs import check_lake
from rqueue.cli.pipeline.spark_conf import settings_of
from rqueue.cli.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rqueue.pipeline.missing import Missing
    from rqueue.settings import Settings
    from rqueue.spark.access import Access

EXTRA = ("pyspark", "py4j", "pyarrow", "numpy", "matplotlib", "jinja2")
"""The packages of the extra rqueue[spark]."""

LOCAL = "local[*]"
LOCAL_SHUFFLES = "8"
"""Partitions of a shuffle on this machine; Spark's own 200 are for clusters."""

PATIENCE = "1m"
"""How long a command waits for a Redis that goes away under it; the archiver has its own."""

F = TypeVar("F", bound=Callable[..., Any])


class PipelineFailure(Failure):
    """Spark's complaint, as one line."""


# -- options ---------------------------------------------------------------------------------------


def spark_options(command: F) -> F:
    """Add --master and --conf."""
    for decorate in (
        click.option(
            "--conf",
            multiple=True,
            metavar="NAME=VALUE",
            help="A setting of Spark; may be repeated. spark.log.level=WARN lets it log here.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Where Spark runs: local[2], spark://host:7077, yarn, k8s://...; default: what"
            " spark-submit says, or local[*].",
        ),
    ):
        command = decorate(command)
    return command


def queue_option(command: F) -> F:
    """Add --queue, which may be repeated."""
    decorate: Callable[[F], F] = click.option(
        "--queue",
        "-q",
        "queues",
        type=filled,
        multiple=True,
        metavar="QUEUE",
        help="Only this queue; may be repeated. Default: all.",
    )
    return decorate(command)


def cluster_option(command: F) -> F:
    """Add --cluster."""
    decorate: Callable[[F], F] = click.option(
        "--cluster",
        is_flag=True,
        help="Redis is a Redis Cluster, of which --url names any node; redis+cluster:// says so"
        " too.",
    )
    return decorate(command)


def lake_option(command: F) -> F:
    """Add --lake."""
    decorate: Callable[[F], F] = click.option(
        "--lake",
        metavar="FOLDER",
        help="The lake that 'rqueue pipeline archive' writes: a path or URL that Spark reads.",
    )
    return decorate(command)


def range_options(command: F) -> F:
    """Add --from and --to, as `since` and `until`."""
    for decorate in (
        click.option(
            "--to",
            "until",
            type=filled,
            metavar="WHEN",
            help="Before: a time with its zone, or 1h (ago).",
        ),
        click.option(
            "--from",
            "since",
            type=filled,
            metavar="WHEN",
            help="From: a time with its zone, or 1d (ago).",
        ),
    ):
        command = decorate(command)
    return command


def in_order(first_ms: int, last_ms: int, first: str, last: str) -> None:
    """Refuse a range that holds nothing; 0: no such limit. Raises UsageError."""
    if last_ms and first_ms >= last_ms:
        raise click.UsageError(f"{first} is not before {last}: there is nothing in between")


# -- the session -----------------------------------------------------------------------------------


@contextlib.contextmanager
def spark_session(
    master: str | None, conf: tuple[str, ...] = (), app: str = "rqueue"
) -> Iterator[SparkSession]:
    """A session for one command, stopped behind it unless it was there before.

    Spark prints nothing, for an error is one line; with --conf spark.log.level=INFO (or
    WARN, ERROR) it logs as it always does. Raises SparkMissing, JavaMissing and BadParameter.
    """
    from rqueue.spark.registration import require_spark

    require_spark()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    from rqueue.spark.errors import SparkGone, java_ended, spark_is_gone
    from rqueue.spark.quiet_java import end_quietly
    from rqueue.spark.session import session

    chosen = master or _submitted() or LOCAL
    settings = {}
    if chosen.startswith("local"):
        settings["spark.sql.shuffle.partitions"] = LOCAL_SHUFFLES
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    settings |= settings_of(conf)
    before = _active()
    spark = before
    try:  # also while the session is made: Java may end at any moment
        spark = spark or session(chosen, app, quiet=True, **settings)
        end_quietly(spark)
        yield spark
    except Exception as error:
        if not spark_is_gone(error) or isinstance(error, SparkGone):
            raise
        raise SparkGone from None
    finally:
        # a JVM that is gone cannot be stopped; the signal that ends us may end Java too
        if before is None and spark is not None and not java_ended():
            with contextlib.suppress(ConnectionError, Py4JError):
                spark.stop()


def _active() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _submitted() -> str | None:
    """The master that spark-submit was given; None when it did not start this."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkConf

    return SparkConf().get("spark.master")


@contextlib.contextmanager
def source_access(target: Target, cluster: bool = False) -> Iterator[Access]:
    """The server of the command line, as rqueue's sources reach it, with the credentials.

    Those go to the JVM's environment too, which the driver's side of a source reads, so that this
    has to be opened before the session is made.
    """
    from rqueue.spark.access import Access
    from rqueue.spark.options import JobsRead, read_options

    options = {"queues": "*", "cluster": str(cluster).lower(), "patience": PATIENCE}
    with environment(target.settings()):
        yield Access.of(read_options(JobsRead, options))


def require_server(access: Access) -> None:
    """Raise what is wrong with the server, before Spark is started for it: the tree of
    `rqueue.errors`; SparkMissing comes first."""
    from rqueue.errors import WrongServer
    from rqueue.spark.registration import require_spark
    from rqueue.transport.server_check import server_facts

    require_spark()
    with access.client() as client:
        problem = server_facts(client).problem
    if isinstance(problem, WrongServer):
        raise problem


@contextlib.contextmanager
def history_table(
    target: Target,
    cluster: bool,
    lake: str | None,
    since: str | None,
    until: str | None,
    master: str | None,
    conf: tuple[str, ...],
) -> Iterator[tuple[SparkSession, DataFrame, list[Missing]]]:
    """A session, history of all queues between two times (see `range_options`), of a lake or the
    one that Redis keeps, and what is missing in it."""
    first, last = moment(since, "from"), moment(until, "to")
    in_order(first, last, "--from", "--to")
    check_lake(lake, master, conf)
    with contextlib.ExitStack() as stack:
        options = None
        if lake is None:
            access = stack.enter_context(source_access(target, cluster))
            require_server(access)
            options = access.options
        spark = stack.enter_context(spark_session(master, conf))
        from rqueue.pipeline.missing import missing

        lacking = missing(spark, first, last or 2**53, lake=lake, live=options)
        if options is None:
            assert lake is not None
            yield spark, lake_rows(spark, lake, (), first, last), lacking
            return
        if first:
            options["since"] = str(first)
        if last:
            options["until"] = str(last - 1)
        yield spark, spark.read.format("rqueue-history").options(**options).load(), lacking


def lake_rows(
    spark: SparkSession, lake: str, queues: tuple[str, ...], first_ms: int, last_ms: int
) -> DataFrame:
    """Rows of a lake that were written from one time on, and before another; 0: no such limit."""
    from rqueue.pipeline.lake.lake import day_of, read

    rows = read(spark, lake, queues)
    written = "CAST(split_part(entry, '-', 1) AS BIGINT)"
    if first_ms:
        rows = rows.where(f"date >= DATE '{day_of(first_ms)}' AND {written} >= {first_ms}")
    if last_ms:
        rows = rows.where(f"date <= DATE '{day_of(last_ms)}' AND {written} < {last_ms}")
    return rows


@contextlib.contextmanager
def environment(settings: Settings) -> Iterator[None]:
    """The server of these settings in RQUEUE_URL and RQUEUE_NAMESPACE, for a while."""
    wanted = {"RQUEUE_URL": settings.url or "", "RQUEUE_NAMESPACE": settings.namespace}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# -- Spark's errors --------------------------------------------------------------------------------

_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Missing)): (.+)$", re.M)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")
_CALLED = re.compile(r"An error occurred while calling ")
_JAVA = re.compile(r"^: (?:[\w$]+\.)+[\w$]+: ")
_STATE = re.compile(r" *SQLSTATE: \w+\.?;?")


def spark_failure(error: BaseException) -> Failure | None:
    """The meaning of an exception of Spark, as one line and an exit code; None if it is not
    Spark's.

    An error of rqueue that was raised in a source, in another process, keeps its code and advice.
    """
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__]
    if not any(kind.startswith(("pyspark.errors", "py4j.protocol")) for kind in kinds):
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in EXTRA:
            from rqueue.spark.errors import SparkMissing

            error = SparkMissing(f"{error.name} is not installed")
        if exit_code(error) == MISSING:
            return PipelineFailure(str(error), MISSING)
        return None
    from rqueue.protocol.advice import describe
    from rqueue.spark.errors import error_of_text

    text = str(error)
    if found := error_of_text(text):
        return PipelineFailure(describe(found), exit_code(found))
    wrong = any(kind.endswith(("AnalysisException", "ParseException")) for kind in kinds)
    raised = _RAISED.findall(text)
    if "Traceback (most recent call last)" in text and raised:
        line = f"{raised[-1][0]}: {raised[-1][1]}"
    else:
        lines = [line for line in text.splitlines() if line.strip() and not _CALLED.match(line)]
        line = _JAVA.sub("", lines[0]) if lines else type(error).__name__
    line = _STATE.sub("", _CONDITION.sub("", line.strip()))
    return PipelineFailure(f"Spark: {' '.join(line.split())}", USAGE if wrong else NEGATIVE)
