"""Archive: history goes from Redis into the lake, each row once.

A structured stream reads history; each of its batches is written aside, put into its folders, and
becomes part of the lake in one step (see `rqueue.pipeline.lake.lake`). Where Python's workers see
the lake's file system, they write the files themselves, which costs a tenth of what it costs Spark
(see `rqueue.pipeline.archive.staging`); elsewhere the stream is `rqueue-history`, and Spark writes.
Nothing depends on the moment at which that is interrupted:

- before that step: the batch comes again; the files that were written are seen by no reader, and
deleted later. - after it, before the checkpoint knows: the batch comes again, and since the lake
says for each queue up to which entry it holds all of it, its rows are known and left out.

So the checkpoint only saves work. Without it (deleted, broken and put aside, or of another Spark)
the stream begins at the oldest entry that Redis still has, and what the lake holds is left out.

And so a query that fails is started again, in the same Java: a server that went away is waited for,
what Spark itself failed with is tried again, for as long as the patience lasts without any progress
(see `rqueue.pipeline.archive.recovery`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rqueue.errors import ServerError
from rqueue.model.locks import new_lock
from rqueue.pipeline.archive import compact as compaction
from rqueue.pipeline.archive.batches import CLEAN_S, Batch, BatchWriter, busy
from rqueue.pipeline.archive.lag import Lag
from rqueue.pipeline.archive.recovery import (
    Patience,
    is_of_spark,
    may_go_better,
    put_checkpoint_aside,
)
from rqueue.pipeline.lake.lake import CHECKPOINT, Lake
from rqueue.protocol.commands.server import ping
from rqueue.spark import register
from rqueue.spark.access import Access
from rqueue.spark.errors import SparkGone, java_ended, spark_is_gone
from rqueue.spark.options import HistoryStream, read_options
from rqueue.transport.redis_client import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Archived", "Batch", "Idle", "Notice", "archive"]

INTERVAL_S = 10.0

PATIENCE_S = 600.0
"""How long a run goes on trying without any progress."""

ENDING_S = 5.0
"""How long Java may take to end, where a signal went to it too."""

START_S = 5.0
"""How long a server is waited for that never answered: its address may be wrong."""

CHECKPOINT_FAILURES = 2
"""Failures of Spark in a row, before the first batch, after which the checkpoint is put aside."""

HEARTBEAT_S = 60.0
"""How often a run says that it is there while nothing comes."""

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
_LOOK_S = 0.2  # how often a query that runs is looked at

_running: set[str] = set()
_running_lock = new_lock()


@dataclass(frozen=True, slots=True)
class Notice:
    """An event of a run that goes on.

    waiting: it failed with `error`, and is tried again in so many seconds; again: it is, so many
    seconds after it failed first; checkpoint: Spark's one was broken and is put aside, to `place`.
    """

    kind: Literal["waiting", "again", "checkpoint"]
    error: Exception | None = None
    seconds: float = 0.0
    place: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing came for a while. total: rows of this run so far; lag: as in `Batch`; one that is not
    0 again and again means that it hangs."""

    total: int
    lag: Lag


@dataclass(frozen=True, slots=True)
class Archived:
    """The work of a run: rows and batches that were added, and folders that were compacted."""

    rows: int
    batches: int
    merged: int


def archive(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str],
    *,
    once: bool = False,
    interval_s: float = INTERVAL_S,
    patience_s: float = PATIENCE_S,
    heartbeat_s: float = HEARTBEAT_S,
    compact: bool = True,
    stop: threading.Event | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    on_merged: Callable[[compaction.Merged], None] | None = None,
    on_notice: Callable[[Notice], None] | None = None,
    on_idle: Callable[[Idle], None] | None = None,
) -> Archived:
    """Add to the lake at `path` what it does not hold yet of the history of some queues.

    options: of the stream `rqueue-history` (`url`, `queues`, `maxRowsPerBatch`, ...). once: end
    when all is there that was there at the beginning; else go on, a batch every `interval_s`
    seconds, until `stop` is set, and then end with the batch that is under way. patience_s: how
    long to wait for Redis, and to start a query again that fails, without any progress. compact:
    merge small files in between. on_batch is called for each batch that brought rows, on_idle every
    `heartbeat_s` seconds without one, on_notice for what goes wrong and is tried again.

    Raises what the source raises when patience is over, LakeBusy if another archiver adds to the
    same lake, LakeError, SparkGone.
    """
    register(spark)
    options = {"patience": "0s", **options}  # the run waits itself, and says so
    access = Access.of(read_options(HistoryStream, options))
    lake = Lake(spark, path)
    run = BatchWriter(lake, access, compact, on_batch, on_merged)
    over = threading.Event() if stop is None else stop

    try:
        with _only_one(lake):
            lake.keep_schema()
            _keep_quiet(spark)
            if _wait_for_server(access, Patience(min(START_S, patience_s)), 0.0, over):
                start = partial(_start, run, options, path, once, interval_s)
                idle = partial(_await, run=run, heartbeat_s=heartbeat_s, on_idle=on_idle)
                _keep_on(start, idle, run, access, Patience(patience_s), over, on_notice)
                run.tidy(CLEAN_S)
    except Exception as error:
        # the signal that ends us may end Java too, a moment before
        if not (spark_is_gone(error) or java_ended(ENDING_S if over.is_set() else 0.0)):
            raise
        if not over.is_set():
            raise SparkGone from None
    return Archived(run.rows, run.batches, run.merged)


def _keep_on(
    start: Callable[[], StreamingQuery],
    wait: Callable[[StreamingQuery, threading.Event], None],
    run: BatchWriter,
    access: Access,
    patience: Patience,
    stop: threading.Event,
    on_notice: Callable[[Notice], None] | None,
) -> None:
    """Start a query, and another one when it fails, until one ends well or `stop` is set.

    A checkpoint only saves work. So it is put aside, once, when Spark fails twice in a row before
    the first batch of a query, whatever Spark says. Raises what cannot go better by itself, and
    what patience ends with.
    """

    def tell(notice: Notice) -> None:
        if on_notice is not None:
            on_notice(notice)

    put_aside, failures = False, 0
    while True:
        began, batches, run.error = time.monotonic(), run.batches, None
        try:
            wait(start(), stop)
            return
        except Exception as error:
            if spark_is_gone(error):
                raise
            if run.batches > batches:
                patience.progress()
            failures = failures + 1 if run.batches == batches and is_of_spark(error) else 0
            kept = run.lake.files.exists(CHECKPOINT)
            if failures == CHECKPOINT_FAILURES and kept and not put_aside:
                put_aside = True
                place = put_checkpoint_aside(run.lake.files)
                tell(Notice("checkpoint", error, place=place))
                continue
            if not may_go_better(error) or stop.is_set():
                raise
            delay = patience.failed(time.monotonic() - began)
            if delay is None:
                raise
            tell(Notice("waiting", error, delay))
            if not _wait_for_server(access, patience, delay, stop):
                return
            tell(Notice("again", seconds=patience.waited))


def _start(
    run: BatchWriter, options: Mapping[str, str], path: str, once: bool, interval_s: float
) -> StreamingQuery:
    writer = (
        run.stream(options)
        .writeStream.queryName(f"archive {path}")
        .option("checkpointLocation", run.lake.files.path(CHECKPOINT))
        .foreachBatch(run.store)
    )
    writer = (
        writer.trigger(availableNow=True)
        if once
        else writer.trigger(processingTime=f"{round(interval_s * 1000)} milliseconds")
    )
    with _few_helpers(run.lake):
        return writer.start()


def _await(
    query: StreamingQuery,
    stop: threading.Event,
    run: BatchWriter,
    heartbeat_s: float,
    on_idle: Callable[[Idle], None] | None,
) -> None:
    """Wait until the query ends, or `stop` is set; raises what ended it."""
    ended = threading.Event()
    failed: list[Exception] = []

    def watch() -> None:
        try:
            query.awaitTermination()
        except Exception as error:
            failed.append(error)
        ended.set()

    watcher = threading.Thread(target=watch, name="archive", daemon=True)
    watcher.start()
    batches, quiet_since = run.batches, time.monotonic()
    while not ended.wait(_LOOK_S) and not stop.is_set():
        now = time.monotonic()
        if run.batches != batches:
            batches, quiet_since = run.batches, now
        elif on_idle is not None and now - quiet_since >= heartbeat_s:
            quiet_since = now
            with suppress(ServerError):  # the query meets it too, and ends
                on_idle(Idle(run.rows, run.lag()))
    if not ended.is_set():
        with run.between:
            query.stop()
    watcher.join()
    if run.error is not None:
        raise run.error
    if failed:
        if "Multiple streaming queries are concurrently" in str(failed[0]):
            raise busy(run.lake)
        raise failed[0]


def _wait_for_server(
    access: Access, patience: Patience, delay: float, stop: threading.Event
) -> bool:
    """Wait so long, and then until the server answers; False when `stop` is set. Raises what it
    fails with when patience is over."""
    while not stop.wait(delay):
        try:
            with access.client() as client:
                execute(client, ping())
            return True
        except ServerError as error:
            again = patience.failed(0.0)
            if again is None or not may_go_better(error):
                raise
            delay = again
    return False


@contextmanager
def _only_one(lake: Lake) -> Iterator[None]:
    """One archiver of this process for a lake: two queries of one Java with one checkpoint would
    stop each other, and neither say so."""
    with _running_lock:
        if lake.path in _running:
            raise busy(lake)
        _running.add(lake.path)
    try:
        yield
    finally:
        with _running_lock:
            _running.discard(lake.path)


@contextmanager
def _few_helpers(lake: Lake) -> Iterator[None]:
    """On a file system of this machine, let a query that is started keep its checkpoint without
    running `ls`, `chmod` and `readlink` for each file, as Hadoop does for want of its native
    library: thirty processes for each batch. The lake's contents do not depend on it."""
    chosen = _file_manager(lake.spark) if lake.files.local is not None else None
    if chosen is None:
        yield
        return
    conf = lake.spark.conf
    before = {name: conf.get(name, None) for name in (_FILE_MANAGER, _FILE_CHECKSUMS)}
    if before[_FILE_MANAGER] is None:
        conf.set(_FILE_MANAGER, chosen)
        conf.set(_FILE_CHECKSUMS, "false")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                conf.unset(name)
            else:
                conf.set(name, value)


def _file_manager(spark: SparkSession) -> str | None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    classes: Any = getattr(spark._jvm, "java.lang.Class")
    for package in ("streaming.checkpointing", "streaming"):  # since Spark 4.1, before
        name = f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"
        try:
            classes.forName(name)
        except Py4JJavaError:
            continue
        return name
    return None


def _keep_quiet(spark: SparkSession) -> None:
    """The error that ends the query is raised; Spark need not print pages about it as well."""
    configurator: Any = getattr(spark._jvm, "org.apache.logging.log4j.core.config.Configurator")
    level: Any = getattr(spark._jvm, "org.apache.logging.log4j.Level")
    for package in ("streaming.runtime", "streaming"):  # since Spark 4.1, before
        name = f"org.apache.spark.sql.execution.{package}.MicroBatchExecution"
        configurator.setLevel(name, level.OFF)
