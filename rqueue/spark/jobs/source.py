"""The source `rqueue`: the jobs of queues as a table, and tables as jobs.

A read is a snapshot in this sense. When it is planned, the ends of all lists are noted; jobs that
join behind them are not read, so that a read ends however fast others enqueue. The pages are looked
at one after the other, while workers go on:

- Within one state, and one queue, each job appears once at most.
- A job that is in a state when the read is planned, and stays there in its place until the read
  ends, appears once.
- A job that comes, goes or moves meanwhile may appear or not, and may appear in two states, if it
  went from one to the other between two looks. `dropDuplicates(["queue", "id"])` keeps one.

Spark plans the read of a DataFrame once for all queries that use it: `load()` again to look again.
Nothing is changed by looking. Each partition reads `maxRowsPerSecond` at most, in pages, so that
workers are hardly slowed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rqueue.logs import logger
from rqueue.protocol.commands.job_notes import notes_of
from rqueue.protocol.commands.queue_keys import meta_fields
from rqueue.spark import schemas
from rqueue.spark.access import Access
from rqueue.spark.jobs.batches import JobBatches
from rqueue.spark.jobs.pages import Part, pages, plan
from rqueue.spark.options import JOB_STATES, READ_RATE, JobsRead, JobsWrite, read_options

if TYPE_CHECKING:
    import pyarrow as pa

    from rqueue.protocol.keys import QueueKeys
    from rqueue.spark.jobs.pages import Found
    from rqueue.spark.patience import Reader
    from rqueue.spark.write.writer import BatchWriter, StreamWriter

__all__ = ["JobsReader", "JobsSource", "Piece"]

log = logger("rqueue.spark")

ROWS = 8192
"""Rows from which on a batch goes to Spark."""


class JobsSource(DataSource):
    """`rqueue`: `spark.read`, `df.write` and `writeStream`; its options are in `docs/spark.md`."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` is given."""
        return "rqueue"

    def schema(self) -> StructType:
        """All columns of a read; a user who wants some of them passes these to `.schema()`."""
        return schemas.JOBS

    def reader(self, schema: StructType) -> JobsReader:
        """For one read. Raises ConfigError."""
        return JobsReader(read_options(JobsRead, self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """For one write. Raises ConfigError."""
        from rqueue.spark.write.writer import BatchWriter

        return BatchWriter(read_options(JobsWrite, self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """For a stream. Raises ConfigError."""
        from rqueue.spark.write.writer import StreamWriter

        return StreamWriter(read_options(JobsWrite, self.options), schema, overwrite)


@dataclass
class Piece(InputPartition):
    """The part that one task reads; None: nothing."""

    part: Part | None


class JobsReader(DataSourceReader):
    """Reads the jobs that are there; see the module for what that means. It takes over no filters,
    see `HistoryReader`."""

    def __init__(self, options: JobsRead, schema: StructType) -> None:
        self.options = options
        self.access = Access.of(options)
        self.columns = schemas.chosen(schema, schemas.JOBS_COLUMNS)

    @property
    def states(self) -> set[str]:
        """The states that are read."""
        return set(self.options.states or JOB_STATES)

    @property
    def tasks(self) -> set[str] | None:
        """The tasks whose jobs are read; None: all, and jobs that cannot be read."""
        return set(self.options.tasks) or None

    @property
    def levels(self) -> set[int] | None:
        """The priority levels whose jobs are read; None: all, and jobs that cannot be read."""
        return set(self.options.levels) or None

    def partitions(self) -> Sequence[InputPartition]:
        """One for each queue and state, of waiting jobs for each level, and several for a long
        list."""
        with self.access.reader() as reader:
            names = sorted(self.access.names(reader, self.options.queues))
            if self.options.queues:
                self._warn(reader, names)
            found = [
                Piece(part)
                for name in names
                for part in plan(
                    reader,
                    self.access.keys(name),
                    self.states,
                    self.levels,
                    self.options.partition_rows,
                )
            ]
        return found or [Piece(None)]

    def _warn(self, reader: Reader, names: Sequence[str]) -> None:
        """Name the queues that are not there."""
        stamps = reader.run_all([meta_fields(self.access.keys(name), "v") for name in names])
        for name, (stamp,) in zip(names, stamps, strict=True):
            if stamp is None:
                log.warning(
                    "there is no queue '%s' at %s: the table has no row of it",
                    name, self.access.url,
                )  # fmt: skip

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The jobs of one part, as Arrow batches."""
        assert isinstance(partition, Piece)
        part = partition.part
        if part is None:
            return
        keys = self.access.keys(part.queue)
        rate = self.options.max_rows_per_second
        rate = READ_RATE if rate is None else rate
        batches = JobBatches(part.queue, self.columns, self.tasks, self.levels)
        with self.access.reader() as reader:
            begin, rows = time.monotonic(), 0
            for page in pages(reader, keys, part, self.states, self.options.page_size):
                batches.add(page, _errors(reader, keys, page) if batches.wants_errors else None)
                if batches.rows >= ROWS:
                    yield batches.take()
                rows += len(page)
                if rate and (ahead := rows / rate - (time.monotonic() - begin)) > 0:
                    time.sleep(ahead)
        if batches.rows:
            yield batches.take()


def _errors(reader: Reader, keys: QueueKeys, page: list[Found]) -> list[bytes | None]:
    return reader.run(notes_of(keys, "errors", [found.job.id for found in page]))
