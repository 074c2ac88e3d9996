"""The source `rqueue-history`: what became of jobs, as a table or as an unbounded one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rqueue.errors import ConfigError
from rqueue.logs import logger
from rqueue.protocol.commands.history import BEGIN, order
from rqueue.spark import schemas
from rqueue.spark.access import Access
from rqueue.spark.history.batches import read_slice
from rqueue.spark.history.entries import Range, Slice, before, cut, look, slices
from rqueue.spark.options import HistoryRead, HistoryStream, read_options

if TYPE_CHECKING:
    import pyarrow as pa

    from rqueue.spark.history.stream import HistoryStreamReader

__all__ = ["HistoryReader", "HistorySource"]

log = logger("rqueue.spark")


class HistorySource(DataSource):
    """`rqueue-history`: `spark.read` and `spark.readStream`; its options are in `docs/spark.md`."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` is given."""
        return "rqueue-history"

    def schema(self) -> StructType:
        """All columns; a user who wants some of them passes these to `.schema()`."""
        return schemas.HISTORY

    def reader(self, schema: StructType) -> HistoryReader:
        """For one read. Raises ConfigError."""
        return HistoryReader(read_options(HistoryRead, self.options), schema)

    def streamReader(self, schema: StructType) -> HistoryStreamReader:
        """For a stream. Raises ConfigError."""
        from rqueue.spark.history.stream import HistoryStreamReader

        return HistoryStreamReader(read_options(HistoryStream, self.options), schema)


class HistoryReader(DataSourceReader):
    """Reads the entries between two ids or times that are there when it is planned.

    It takes over no filters (`pushFilters`): Spark keeps one plan of a source's read for all
    queries that use a DataFrame, and one with other filters, or without any, would get the rows of
    the last one that had some. Options leave out rows that shall not be read.
    """

    def __init__(self, options: HistoryRead, schema: StructType) -> None:
        _check_range(options.since, options.until)
        self.options = options
        self.access = Access.of(options)
        self.columns = schemas.chosen(schema, schemas.HISTORY_COLUMNS)

    def partitions(self) -> Sequence[InputPartition]:
        """Slices of about `partitionRows`."""
        since, until = self.options.since, self.options.until
        begin = BEGIN if since == "-" else before(since)
        step = self.options.partition_rows
        with self.access.reader() as reader:
            names = self.access.names(reader, self.options.queues)
            ranges: list[Range] = []
            for name, ends in look(reader, self.access, names).items():
                after = max(begin, self.options.after.get(name, BEGIN), key=order)
                last = ends.last if until == "+" else _earlier(until, ends.last)
                if self.options.queues and ends.last == BEGIN:
                    log.warning(
                        "queue '%s' has no history at %s: the table has no row of it",
                        name, self.access.url,
                    )  # fmt: skip
                first = ends.trimmed if ends.lost_after(after) else after
                if order(last) > order(first):
                    whole = Range(name, first, last, ends.rows - ends.gone, False)
                    ranges += cut(reader, self.access.keys(name), whole, step)
        return slices(ranges, step) or [Slice(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice, as Arrow batches."""
        assert isinstance(partition, Slice)
        yield from read_slice(self.access, partition, self.columns)


def _check_range(since: str, until: str) -> None:
    """Refuse a range that holds nothing. Raises ConfigError."""
    if since == "+":
        raise ConfigError("since", "latest is for streams: a read begins at the oldest entry, -")
    if until == "-" or (since != "-" and until != "+" and order(since) > order(_whole(until))):
        raise ConfigError("until", f"{until} is before since ({since}): no row is between them")


def _earlier(until: str, last: str) -> str:
    """The end of a range."""
    return min(_whole(until), last, key=order)


def _whole(until: str) -> str:
    """The last entry of a range: a bare time means its whole millisecond."""
    return until if "-" in until else f"{until}-{2**64 - 1}"
