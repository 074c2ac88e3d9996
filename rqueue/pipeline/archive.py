"""Archive: history goes from Redis into the lake, each row once.

A structured stream reads history; each of its batches is written aside, put into its folders, and
becomes part of the lake in one step (see `rqueue.pipeline.lake`). Where Python's workers see the
lake's file system, they write the files themselves, which costs a tenth of what it costs Spark
(see `rqueue.pipeline.staging`); elsewhere the stream is `rqueue-history`, and Spark writes. Nothing
depends on the moment at which that is interrupted:

- before that step: the batch comes again; what was written is seen by nobody, and deleted later.
- after it, before the checkpoint knows: the batch comes again, and since the lake says for each
  queue up to which entry it holds all of it, its rows are known and left out.

So the checkpoint only saves work. Without it (deleted, or of another Spark) the stream begins at
the oldest entry that Redis still has, and what the lake holds is left out.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from rqueue.pipeline import compact as compaction
from rqueue.pipeline.errors import LakeBusy
from rqueue.pipeline.lag import Lag, measure
from rqueue.pipeline.lake import (
    CHECKPOINT,
    SCHEMA,
    Entry,
    Lake,
    LakeFile,
    Snapshot,
    day_column,
    entry_id,
)
from rqueue.pipeline.missing import note_gap, trimmed
from rqueue.pipeline.staging import Staged, StagingSource
from rqueue.spark import register
from rqueue.spark.access import Access
from rqueue.spark.entries import look
from rqueue.spark.options import HistoryStream, read_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Archived", "Batch", "archive"]

INTERVAL_S = 10.0

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"

CLEAN_S = 900.0
"""How often a run looks for files that are no longer needed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that the lake holds now. seconds: it took; total: rows of this run so far; lag: what
    is in Redis and not yet in the lake."""

    number: int
    rows: int
    files: int
    seconds: float
    total: int
    lag: Lag


@dataclass(frozen=True, slots=True)
class Archived:
    """What a run did: rows and batches that were added, and folders that were compacted."""

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
    compact: bool = True,
    stop: threading.Event | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    on_merged: Callable[[compaction.Merged], None] | None = None,
) -> Archived:
    """Add to the lake at `path` what it does not hold yet of the history of some queues.

    options: of the stream `rqueue-history` (`url`, `queues`, `maxRowsPerBatch`, ...). once: end
    when all is there that was there at the beginning; else go on, a batch every `interval_s`
    seconds, until `stop` is set, and then end with the batch that is under way. compact: merge
    small files in between. on_batch is called for each batch that brought rows.

    Raises what the source raises, LakeBusy if another archiver adds to the same lake, LakeError.
    """
    register(spark)
    access = Access.of(read_options(HistoryStream, options))
    run = _Run(Lake(spark, path), access, compact, on_batch, on_merged)
    run.lake.keep_schema()
    _keep_quiet(spark)
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
        query = writer.start()
    _await(query, stop, run)
    run.tidy(CLEAN_S)
    return Archived(run.rows, run.batches, run.merged)


class _Run:
    """One run of the archiver: what it has done so far, and how a batch is stored."""

    def __init__(
        self,
        lake: Lake,
        access: Access,
        compact: bool,
        on_batch: Callable[[Batch], None] | None,
        on_merged: Callable[[compaction.Merged], None] | None,
    ) -> None:
        self.lake = lake
        self.rows = self.batches = self.merged = 0
        self.error: Exception | None = None
        self.between = threading.Lock()
        """Held while a batch is stored: who has it, stops between two of them."""
        self._access = access
        self._compact = compact
        self._on_batch = on_batch
        self._on_merged = on_merged
        self._cleaned = time.monotonic()
        self._staging = lake.staging() if lake.files.local is not None else None

    def stream(self, options: Mapping[str, str]) -> DataFrame:
        """What `store` gets batches of: rows of history, or of files that hold them already."""
        reader = self.lake.spark.readStream
        if self._staging is None:
            return reader.format("rqueue-history").options(**options).load()
        self.lake.spark.dataSource.register(StagingSource)
        place = {"staging": f"{self.lake.files.local}/{self._staging}", "codec": self.lake.codec()}
        return reader.format(StagingSource.name()).options(**options, **place).load()

    def store(self, rows: DataFrame, number: int) -> None:
        """Make a batch part of the lake, without what it has already."""
        with self.between:
            try:
                began = time.monotonic()
                made = self._add(rows, number)
                if not made:
                    return
                self.batches += 1
                count = sum(file.rows for file in made)
                self.rows += count
                took = time.monotonic() - began
                if self._on_batch is not None:
                    lag = measure(self._access, self._offsets(number))
                    self._on_batch(Batch(number, count, len(made), took, self.rows, lag))
                self.tidy(time.monotonic() - self._cleaned)
            except Exception as error:
                self.error = error  # Spark would make a text of it
                raise

    def tidy(self, since_s: float) -> None:
        """Compact what is due, if wanted; delete what nobody needs any more, if that is so long
        ago."""
        for files in compaction.due(self.lake.snapshot()) if self._compact else ():
            done = compaction.merge(self.lake, files)
            if done is not None:
                self.merged += 1
                if self._on_merged is not None:
                    self._on_merged(done)
        if since_s >= CLEAN_S:
            self.lake.clean()
            self._cleaned = time.monotonic()

    def _offsets(self, number: int) -> dict[str, str]:
        """How far a batch goes, from the checkpoint."""
        text = self.lake.files.read_text(f"{CHECKPOINT}/offsets/{number}") or "{}"
        offsets: dict[str, str] = json.loads(text.splitlines()[-1])
        return offsets

    def _add(self, rows: DataFrame, number: int) -> list[LakeFile]:
        lake = self.lake
        before = lake.snapshot()
        marks = before.marks()
        self._note_gaps(sorted(self._offsets(number)), before, marks)
        if self._staging is None:
            new = rows.where(_beyond(marks)).withColumn("date", day_column("entry"))
            made = lake.stage(new)
        else:
            made = self._take(self._staging, rows, marks)
        if made:
            self._commit(before, made)
        return made

    def _note_gaps(self, queues: list[str], before: Snapshot, marks: Mapping[str, Entry]) -> None:
        """Note what Redis has trimmed behind what the lake holds: a batch that is read from here
        on comes after it. Noted before the batch is there, so that a kill does not forget it."""
        held = before.rows_of_queues()
        with self._access.client() as client:
            for queue, ends in look(client, self._access, queues).items():
                gap = trimmed(queue, ends, marks.get(queue), held.get(queue, 0))
                if gap is not None:
                    note_gap(self.lake, gap)

    def _take(self, folder: str, rows: DataFrame, marks: Mapping[str, Entry]) -> list[LakeFile]:
        """Let tasks write a batch into files, and take over what the lake does not hold yet."""
        lake = self.lake
        try:
            files = [Staged(*row) for row in rows.collect()]
            new, partly = [], []
            for file in files:
                mark = marks.get(file.queue)
                if mark is None or Entry.of(file.first) > mark:
                    new.append(file)
                elif Entry.of(file.last) > mark:
                    partly.append(lake.files.path(f"{folder}/{file.name}"))
            made = lake.adopt(folder, map(_lake_file, new))
            if partly:  # of a batch that is not the one it was, for the checkpoint is gone
                reader = lake.reader(SCHEMA).option("basePath", lake.files.path(folder))
                made += lake.stage(reader.parquet(*partly).where(_beyond(marks)))
            return made
        finally:
            lake.files.delete(folder)

    def _commit(self, before: Snapshot, made: list[LakeFile]) -> None:
        """Add the files to whatever the lake holds now, if that knows none of their rows."""
        queues = {file.queue for file in made}
        marks = before.marks()
        now = before
        while True:
            known = now.marks()
            if any(known.get(queue) != marks.get(queue) for queue in queues):
                raise _busy(self.lake)
            if self.lake.commit(now, [*now.files, *made]):
                return
            now = self.lake.snapshot()


def _lake_file(file: Staged) -> LakeFile:
    last = Entry.of(file.last)
    return LakeFile(file.name, file.size, file.modified_ms, file.date, file.queue, file.rows, last)


def _beyond(marks: Mapping[str, Entry]) -> Column:
    """The rows after the marks of their queues."""
    if not marks:
        return F.lit(True)
    known = F.create_map(
        *(
            column
            for queue, mark in sorted(marks.items())
            for column in (F.lit(queue), entry_id(F.lit(str(mark))))
        )
    )
    mark = F.try_element_at(known, F.col("queue"))
    return mark.isNull() | (entry_id("entry") > mark)


def _await(query: StreamingQuery, stop: threading.Event | None, run: _Run) -> None:
    """Wait until the query ends, or `stop` is set; raises what ended it."""
    over = threading.Event() if stop is None else stop
    ended = threading.Event()
    failed: list[Exception] = []

    def watch() -> None:
        try:
            query.awaitTermination()
        except Exception as error:
            failed.append(error)
        ended.set()
        over.set()

    watcher = threading.Thread(target=watch, name="archive", daemon=True)
    watcher.start()
    over.wait()
    if not ended.is_set():
        with run.between:
            query.stop()
    watcher.join()
    if run.error is not None:
        raise run.error
    if failed:
        if "Multiple streaming queries are concurrently" in str(failed[0]):
            raise _busy(run.lake)
        raise failed[0]


def _busy(lake: Lake) -> LakeBusy:
    return LakeBusy(
        f"another archiver adds to the lake at {lake.path}; what this one read is left to it: let "
        "only one run"
    )


@contextmanager
def _few_helpers(lake: Lake) -> Iterator[None]:
    """On a file system of this machine, let a query that is started keep its checkpoint without
    running `ls`, `chmod` and `readlink` for each file, as Hadoop does for want of its native
    library: thirty processes for each batch. What is in the lake does not depend on it."""
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

    jvm: Any = spark._jvm
    for package in ("streaming.checkpointing", "streaming"):  # since Spark 4.1, before
        name = f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"
        try:
            jvm.java.lang.Class.forName(name)
        except Py4JJavaError:
            continue
        return name
    return None


def _keep_quiet(spark: SparkSession) -> None:
    """What ends the query is raised; Spark need not print pages about it as well."""
    jvm: Any = spark._jvm
    logs = jvm.org.apache.logging.log4j
    for package in ("streaming.runtime", "streaming"):  # since Spark 4.1, before
        name = f"org.apache.spark.sql.execution.{package}.MicroBatchExecution"
        logs.core.config.Configurator.setLevel(name, logs.Level.OFF)
