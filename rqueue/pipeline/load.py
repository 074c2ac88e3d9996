"""Jobs from any table that Spark reads: files of any format, a database, a table of one's own.

`jobs_of` makes the columns of jobs (`rqueue.spark.write.rows`) out of those of the source; `load`
enqueues them. A load has a name, and the same load under the same name enqueues nothing twice,
within `remember`: a row goes to a partition that what it says decides, and the writer derives its
id from the name, the partition, what the row says, and its number among rows that say the same. So
it does not matter how the source is cut into partitions, in which order it is read, or where a load
before was killed; a row that has come since is enqueued, one that changed is another row. Rows that
say the same are as many jobs as there are rows. The number of partitions has to stay as it is.

The order of the source is lost: many tasks enqueue side by side. A job that shall come first gets a
higher `level`, or goes first, in a load of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from pyarrow import fs
from pyspark.sql import functions as F

from rqueue.errors import ConfigError, RQueueError
from rqueue.model.names import check_queue
from rqueue.protocol.commands.write_log import write_progress
from rqueue.transport.redis_client import execute

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from rqueue.spark.access import Access

__all__ = ["Columns", "Loaded", "jobs_of", "load"]

PARTITIONS = 16
"""Of a load, unless it says so: a few for every core of a small cluster."""

LOOK_S = 1.0
"""Between two looks at how far it is."""

_PLAIN = re.compile(r"\w+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,89}")
_OPTIONAL = (
    *("level", "delay", "at", "max_deliveries", "max_crashes", "ttl"),
    *("time_limit", "soft_time_limit", "keep"),
    *("headers", "labels", "group"),
)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of the source are what in a job.

    queue, task: names for all rows, or SQL of one's own for each row in `more`. args: positional
    arguments, in order. kwargs: arguments by name; None for all columns that nothing else here
    names. id: column with the ids of jobs. more: SQL for further columns of the writer, as in
    `{"level": "CAST(prio AS INT)", "queue": "tenant"}`; a row for which Spark cannot evaluate it is
    no job.
    """

    queue: str | None = None
    task: str | None = None
    args: Sequence[str] = ()
    kwargs: Sequence[str] | None = None
    id: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load. `rows` of the source; `jobs` that are new; `repeated`: rows that this
    load had written before; `known`: rows whose own ids the queue knew; `bad`: rows that are no
    jobs."""

    name: str
    rows: int
    jobs: int
    repeated: int
    known: int
    bad: int


def jobs_of(source: DataFrame, columns: Columns) -> DataFrame:
    """The table of jobs of a source. Raises ConfigError for a column that is not there."""
    there = source.columns
    named = [*columns.args, *(columns.kwargs or ()), *([columns.id] if columns.id else ())]
    for name in named:
        if name not in there:
            near = get_close_matches(name, there, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(there)}"
            raise ConfigError("columns", f"the source has no column '{name}'; {hint}")
    known = ("queue", "task", *_OPTIONAL)
    for name in columns.more:
        if name not in known:
            hint = "its column is level" if name == "priority" else f"there are {', '.join(known)}"
            raise ConfigError("column", f"a job has no '{name}'; {hint}")
    for name in ("queue", "task"):
        given = getattr(columns, name) is not None
        if given == (name in columns.more):
            word = "both for all rows and for each row" if given else "for no row"
            raise ConfigError(name, f"is named {word}: name it one way")
    used = {*named, *(text.strip("` ") for text in columns.more.values())}
    by_name = columns.kwargs
    if by_name is None:
        by_name = [name for name in there if name not in used]
    chosen: list[Column] = []
    if columns.args:
        chosen.append(F.struct(*map(_column, columns.args)).alias("args"))
    if by_name:
        chosen.append(F.struct(*map(_column, by_name)).alias("kwargs"))
    if columns.id:
        chosen.append(_column(columns.id).alias("id"))
    for name in ("queue", "task"):
        if (value := getattr(columns, name)) is not None:
            chosen.append(F.lit(value).alias(name))
    if columns.queue is not None:
        check_queue(columns.queue)
    if not columns.more:
        return source.select(*chosen)
    # values first, so that each expression is evaluated once
    tried = [_tried(source.sparkSession, text).alias(name) for name, text in columns.more.items()]
    values = source.select(*chosen, *tried)
    problems = [
        F.when(F.col(name).isNull(), F.lit(f"{name}: {text} has no value for this row"))
        for name, text in columns.more.items()
    ]
    return values.select(
        *(column for column in values.columns if column not in columns.more),
        *(F.col(f"{name}.value").alias(name) for name in columns.more),
        F.coalesce(*problems).alias("problem"),
    )


def _tried(spark: SparkSession, text: str) -> Column:
    """An expression as a struct of its `value`; null where Spark fails to evaluate it, which a
    struct never is otherwise.

    Spark has that for some functions of its own only (`try_divide`, ...), by an expression that no
    function stands for.
    """
    from pyspark.sql.classic.column import Column as ClassicColumn

    expressions: Any = getattr(spark._jvm, "org.apache.spark.sql.classic.ExpressionUtils")
    tried: Any = getattr(spark._jvm, "org.apache.spark.sql.catalyst.expressions.TryEval")
    inside: Any = F.struct(F.expr(text).alias("value"))
    return ClassicColumn(expressions.column(tried(expressions.expression(inside._jc))))


def load(
    jobs: DataFrame,
    access: Access,
    name: str,
    *,
    bad_rows: str | None = None,
    partitions: int = PARTITIONS,
    remember: str = "7d",
    batch_size: int = 250,
    on_progress: Callable[[int, int], None] | None = None,
) -> Loaded:
    """Enqueue a table of jobs with a column `queue`; `on_progress` is called with how many rows are
    written, of how many.

    bad_rows: folder for rows that are no jobs, which fail the load where there is none; what an
    earlier load of this name put there is replaced. Reads the source twice, first to count it.
    Raises ConfigError, and what Spark raises: then a part is enqueued, and the same load goes on.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError("name", f"{name!r} is not 1 to 90 of letters, digits, '_', '.' and '-'")
    if partitions < 1:
        raise ConfigError("partitions", f"{partitions} is below 1")
    by_queue = {row["queue"]: row["count"] for row in jobs.groupBy("queue").count().collect()}
    rows = sum(by_queue.values())
    run = f"load-{name}"
    # Names that are none are the writer's to refuse, row by row.
    queues = [queue for queue in by_queue if queue is not None and _is_name(queue)]
    look = partial(_so_far, access, queues, run)
    options = access.options | {"runId": run, "batchSize": str(batch_size), "remember": remember}
    if bad_rows is not None:
        options |= {"badRows": "side", "badRowsPath": bad_rows}
    content = F.xxhash64(F.to_json(F.struct(*map(_column, jobs.columns))))
    before = look()
    if bad_rows is not None:
        _forget_bad(bad_rows, run)
    with _Watch(lambda: on_progress(look()[0], rows) if on_progress is not None else None):
        writer = jobs.repartition(partitions, content).write.format("rqueue").options(**options)
        writer.mode("append").save()
    after = look()
    if on_progress is not None:
        on_progress(after[0], rows)
    bad = 0 if bad_rows is None else _count_bad(bad_rows, run)
    wrote = after[0] - before[0]
    new = after[1] - before[1]
    return Loaded(name, rows, new, max(0, rows - bad - wrote), wrote - new, bad)


def _so_far(access: Access, queues: Sequence[str], run: str) -> tuple[int, int]:
    """Rows written under this name, and jobs that were new."""
    with access.client() as client:
        found = [execute(client, write_progress(access.keys(queue), run)) for queue in queues]
    return sum(one.rows for one in found), sum(one.jobs for one in found)


def _bad_files(folder: str, run: str) -> tuple[fs.FileSystem, list[str]]:
    """The files that the writer made of a run's bad rows (`rqueue.spark.write.bad_rows`)."""
    try:
        if "://" in folder:
            files, path = fs.FileSystem.from_uri(folder)
        else:
            files, path = fs.LocalFileSystem(), os.path.abspath(folder)
        found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
    except (OSError, ValueError) as error:
        raise ConfigError("bad-rows", f"cannot read {folder}: {error}") from None
    return files, [
        one.path
        for one in found
        if one.base_name.startswith(f"{run}-0-") and one.base_name.endswith(".json")
    ]


def _forget_bad(folder: str, run: str) -> None:
    files, found = _bad_files(folder, run)
    for path in found:
        files.delete_file(path)


def _count_bad(folder: str, run: str) -> int:
    files, found = _bad_files(folder, run)
    count = 0
    for path in found:
        with files.open_input_stream(path) as stream:
            while block := stream.read(1 << 20):
                count += block.count(b"\n")
    return count


def _column(name: str) -> Column:
    """A column by its name, with any characters in it."""
    return F.col(name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`")


def _is_name(queue: str) -> bool:
    try:
        check_queue(queue)
    except RQueueError:
        return False
    return True


class _Watch:
    """Looks every second how far something is, beside it."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._over = Event()
        self._thread = Thread(target=self._watch, name="load-progress", daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                self._look()
            except RQueueError:
                continue  # Redis is away: the tasks are patient, or say so

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
