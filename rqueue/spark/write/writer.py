"""`df.write.format("rqueue")` and `writeStream`: rows become jobs.

What holds of a write whose tasks, driver or Redis connection are killed at any moment:

- Batch: a task that Spark tries again, or runs twice at once, enqueues nothing twice and loses
  nothing. A write that failed has enqueued a part of its rows; they stay. Repeated under the same
  `runId`, within `remember` (7 days), it enqueues the rest.
- Stream: the run is the query's id, which its checkpoint keeps; an epoch that is repeated after a
  crash enqueues what it lacks, within `remember`.
- Both suppose that Redis keeps what it confirmed, and that a row stays in its partition when it is
  computed again (`rqueue.spark.write.sink`). Rows may come in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import Row, StructType

from rqueue.errors import ConfigError, LifecycleError, RedisUnavailable
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.spark.access import Access
from rqueue.spark.options import JobsWrite
from rqueue.spark.write.bad_rows import BadRow, SideOutput
from rqueue.spark.write.rows import Bad, Table
from rqueue.spark.write.sink import Counts, Sink, Task
from rqueue.transport.redis_client import execute

if TYPE_CHECKING:
    _StreamWriter = datasource.DataSourceStreamArrowWriter
else:  # PySpark 4.0 has no such writer: there the rows come one by one
    _StreamWriter = getattr(
        datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter
    )

__all__ = ["BatchWriter", "StreamWriter", "Written"]

_QUERY = "sql.streaming.queryId"
_EPOCH = "streaming.sql.batchId"
_TURNED = 1000
"""Rows that are turned into one Arrow batch where Spark passes rows."""


@dataclass(frozen=True, slots=True)
class Written(datasource.WriterCommitMessage):
    """What one task did: of `rows`, `bad` ones were put aside, the rest is in `counts`. `failed`:
    the row that ended it, where such rows are not put aside."""

    run: str
    queues: tuple[str, ...]
    rows: int
    bad: int
    counts: Counts
    failed: Bad | None = None
    partition: int = 0


class _Writer:
    """What both writers are: the table, where Redis is, and how rows get there. It is pickled and
    sent to the executors.

    execution: see `Task`. Rows that bring their ids may move.
    """

    execution = ""

    def __init__(self, options: JobsWrite, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError(
                "mode", "rows are added to a queue: write with mode 'append' (output mode append)"
            )
        if options.bad_rows == "side" and options.bad_rows_path is None:
            raise ConfigError("badRowsPath", "where do bad rows go? badRows=side needs it")
        if options.bad_rows == "fail" and options.bad_rows_path is not None:
            raise ConfigError("badRows", "set it to side, or leave badRowsPath out")
        self.options = options
        self.schema = schema
        self.access = Access.of(options)
        self.table = Table.of(
            schema,
            queue=options.queue,
            task=options.task,
            id_column=options.id_column,
            max_body=Settings.load().max_body,
        )

    def run_task(self, given: Iterator[Any], run: str, epoch: int, partition: int) -> Written:
        """Write the rows of one partition."""
        options, access = self.options, self.access
        task = Task(
            run,
            epoch,
            partition,
            options.batch_size,
            options.max_rows_per_second or 0.0,
            options.patience,
            options.remember,
            self.execution,
        )
        signer = access.signer
        aside = None
        if options.bad_rows_path is not None:
            aside = SideOutput(options.bad_rows_path, run, epoch, partition)
        with access.client() as client:
            sink = Sink(client, access.keys, task, signer, cluster=access.cluster)
            try:
                if aside is None:
                    rows, failed = self._write(given, sink, None)
                else:
                    with aside:
                        rows, failed = self._write(given, sink, aside)
                        aside.publish()
            finally:
                sink.close()
        bad = 0 if aside is None else aside.count
        counts = replace(sink.counts)
        return Written(run, sink.queues, rows, bad, counts, failed, partition)

    def _write(
        self, given: Iterator[Any], sink: Sink, aside: SideOutput | None
    ) -> tuple[int, Bad | None]:
        """How many rows were read, and the bad one that was the last of them."""
        rows = 0
        for batch in batches(given, self.schema):
            for job in self.table.jobs(batch, rows):
                if type(job) is Bad:
                    if aside is None:
                        sink.flush()
                        return job.row, job
                    aside.add(job)
                else:
                    sink.add(job)  # type: ignore[arg-type]
            rows += batch.num_rows
        sink.flush()
        return rows, None

    @staticmethod
    def refuse_bad_rows(messages: Sequence[Any]) -> None:
        """Fail the write for a row that is no job. Here, not in the task: Spark would try it again
        and again, with the same row. Raises BadRow."""
        for message in messages:
            if isinstance(message, Written) and message.failed is not None:
                raise BadRow(message.failed, message.run, message.partition)

    def finish(self, messages: Sequence[Any], run: str | None, epoch: int | None) -> None:
        """Forget what the run (of any name: that of its tasks) needs no more."""
        keep_ms = round(self.options.remember * 1000)
        done = {(m.run, queue) for m in messages if isinstance(m, Written) for queue in m.queues}
        if not done:
            return
        with self.access.client() as client:
            for name, queue in sorted(done):
                keys = self.access.keys(queue)
                execute(
                    client, commands.commit_write(keys, run or name, epoch, keep_ms), queue=queue
                )


class BatchWriter(_Writer, datasource.DataSourceArrowWriter):
    """Writes a table once. Raises ConfigError for its columns and options."""

    def __init__(self, options: JobsWrite, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self.run = options.run_id or new_id()
        if options.run_id is not None and not self.table.has_ids:
            self.execution = new_id()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write one partition, in a task."""
        return self.run_task(iterator, self.run, 0, _context().partitionId())

    def commit(self, messages: Sequence[Any]) -> None:
        """Forget the run, unless its name was given: then it may come again. Raises BadRow."""
        self.refuse_bad_rows(messages)
        if self.options.run_id is not None:
            return
        with suppress(RedisUnavailable):  # the rows are there, and the notes end by themselves
            self.finish(messages, self.run, None)


class StreamWriter(_Writer, _StreamWriter):
    """Writes a stream, epoch by epoch. Raises ConfigError for its columns and options."""

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write one partition of an epoch, in a task."""
        context = _context()
        query, epoch = context.getLocalProperty(_QUERY), context.getLocalProperty(_EPOCH)
        run = self.options.run_id or query
        if run is None or epoch is None:
            raise LifecycleError("Spark does not say which epoch of which stream this task is of")
        return self.run_task(iterator, run, int(epoch), context.partitionId())

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Forget the epochs before this one, and refuse them from now on. Raises BadRow."""
        self.refuse_bad_rows(messages)
        self.finish(messages, None, batchId)


def batches(given: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Arrow batches, made of rows where Spark passes rows."""
    first = next(given, None)
    if first is None:
        return
    given = chain((first,), given)
    if isinstance(first, pa.RecordBatch):
        yield from given
        return
    arrow = arrow_of(schema)
    while rows := list(islice(given, _TURNED)):
        yield pa.RecordBatch.from_pylist([_plain(row) for row in rows], schema=arrow)


def arrow_of(schema: StructType) -> pa.Schema:
    """The schema of a table's record batches, as Spark makes them."""
    # PySpark 4.0 knows UTC only, later ones ask for the zone
    asks = "timezone" in signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if asks else to_arrow_schema(schema)


def _plain(row: Iterable[Any]) -> Any:
    return row.asDict(recursive=True) if isinstance(row, Row) else row


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise LifecycleError("a table is written by tasks of Spark")
    return context
