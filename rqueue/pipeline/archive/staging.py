"""History straight from Redis into Parquet files: its rows never pass through the JVM.

A stream that is read like `rqueue-history`, with the same offsets, limits and promises, but whose
tasks write what they read into a folder of the lake at which no reader looks, and pass on one row
for each file: what is in it. For a lake on a file system that Python's workers see themselves; into
others Spark writes. A file that no row names, for its task was killed, or done twice, is nothing;
it goes with the folder.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as st
from pyspark.sql.datasource import DataSource

from rqueue.errors import ConfigError
from rqueue.pipeline.errors import LakeError
from rqueue.protocol.commands.history import order
from rqueue.spark.access import Access
from rqueue.spark.history.batches import ROWS, HistoryBatches
from rqueue.spark.history.entries import Slice, pages
from rqueue.spark.history.stream import HistoryStreamReader
from rqueue.spark.options import HistoryStream, read_options
from rqueue.spark.schemas import HISTORY, HISTORY_COLUMNS, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import InputPartition

__all__ = ["Staged", "StagingSource", "folder_of", "write_slice"]

_CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
    "zstd": "zstd",
}
"""Names of `spark.sql.parquet.compression.codec`, and what pyarrow calls them."""

_COLUMNS = tuple(column for column in HISTORY_COLUMNS if column.name != "queue")
_DIFFER = frozenset({"id", "body", "labels"})  # values do not repeat, or are none
_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
_GROUP_BYTES = 64 * 1024**2  # in memory, before they are written
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")  # as Spark and Hive name folders


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that was written. name: below the folder; first, last: ids of its entries."""

    name: str
    date: date
    queue: str
    rows: int
    first: str
    last: str
    size: int
    modified_ms: int


_SPARK = {"str": st.StringType(), "int": st.LongType(), "date": st.DateType()}
_ARROW = {"str": pa.string(), "int": pa.int64(), "date": pa.date32()}
_FACTS = st.StructType([st.StructField(f.name, _SPARK[str(f.type)]) for f in fields(Staged)])
_ARROW_FACTS = pa.schema([pa.field(f.name, _ARROW[str(f.type)]) for f in fields(Staged)])


class StagingSource(DataSource):
    """The archiver's own format: `staging` is the folder, `codec` how Spark calls a compression;
    the others are the options of `rqueue-history`."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` is given."""
        return "rqueue-history-files"

    def schema(self) -> st.StructType:
        """Columns of `Staged`."""
        return _FACTS

    def streamReader(self, schema: st.StructType) -> StagingReader:
        """For one stream. Raises ConfigError."""
        options: dict[str, str] = dict(self.options)
        folder, codec = options.pop("staging"), options.pop("codec")
        if codec not in _CODECS:
            raise ConfigError(
                "spark.sql.parquet.compression.codec",
                f"the archiver writes {', '.join(_CODECS)}, not {codec}",
            )
        return StagingReader(folder, _CODECS[codec], options)


class StagingReader(HistoryStreamReader):
    """Reads history like its base, and leaves it in files."""

    def __init__(self, folder: str, codec: str, options: Mapping[str, str]) -> None:
        super().__init__(read_options(HistoryStream, options), HISTORY)
        self.folder = folder
        self.codec = codec

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "folder": self.folder, "codec": self.codec}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Write the rows of a slice; what the files are. Raises HistoryLost and LakeError."""
        assert isinstance(partition, Slice)
        made = list(write_slice(self.access, partition, Path(self.folder), self.codec))
        if made:
            columns = zip(*map(astuple, made), strict=True)
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(columns, _ARROW_FACTS, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW_FACTS)


def write_slice(access: Access, part: Slice, folder: Path, codec: str) -> Iterator[Staged]:
    """The rows of a slice into files, of one day and queue each, below a folder.

    Raises HistoryLost, Undecodable, LakeError, and what Redis fails with.
    """
    file: _File | None = None
    with access.reader() as reader:
        for piece in part.ranges:
            keys = access.keys(piece.queue)
            for page in pages(reader, keys, piece.after, piece.until, exact=piece.exact):
                for entry, packed in page:
                    day = _EPOCH + timedelta(days=order(entry)[0] // _DAY_MS)
                    if file is None or (file.day, file.queue) != (day, piece.queue):
                        if file is not None:
                            yield from file.close()
                        file = _File(folder, day, piece.queue, codec)
                    file.add(entry, packed)
    if file is not None:
        yield from file.close()


def folder_of(day: date, queue: str) -> str:
    """The folder of a day and queue, as Spark names it."""
    name = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", queue)
    return f"date={day.isoformat()}/queue={name}"


class _File:
    """A file that is written, row group by row group; it is there when it has rows."""

    def __init__(self, folder: Path, day: date, queue: str, codec: str) -> None:
        self.day = day
        self.queue = queue
        self._name = f"{folder_of(day, queue)}/part-{uuid.uuid4()}.{codec}.parquet"
        self._path = folder / self._name
        self._codec = codec
        self._schema = arrow_schema(_COLUMNS)
        self._batches = HistoryBatches(_COLUMNS)
        self._group: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        self._first = self._last = ""

    def add(self, entry: str, packed: Mapping[bytes, bytes]) -> None:
        """The rows of one more entry. Raises Undecodable and LakeError."""
        before = self._batches.rows
        self._batches.add(self.queue, entry, packed)
        if self._batches.rows == before:  # all of them were refused
            return
        self._rows += self._batches.rows - before
        self._first, self._last = self._first or entry, entry
        if self._batches.rows >= ROWS:
            self._group.append(self._batches.take())
            if sum(batch.nbytes for batch in self._group) >= _GROUP_BYTES:
                self._write()

    def close(self) -> Iterator[Staged]:
        """Write what is left; what the file is, if there is one. Raises Undecodable, LakeError."""
        if self._batches.rows:
            self._group.append(self._batches.take())
        if self._group:
            self._write()
        if self._writer is None:
            return
        with _told(self._path):
            self._writer.close()
            found = os.stat(self._path)
        yield Staged(
            self._name,
            self.day,
            self.queue,
            self._rows,
            self._first,
            self._last,
            found.st_size,
            found.st_mtime_ns // 1_000_000,
        )

    def _write(self) -> None:
        with _told(self._path):
            if self._writer is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(
                    self._path,
                    self._schema,
                    compression=self._codec,
                    use_dictionary=[n for n in self._schema.names if n not in _DIFFER],
                    store_schema=False,  # Arrow's own, which only Arrow reads
                )
            self._writer.write_table(pa.Table.from_batches(self._group, self._schema))
        self._group = []


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Refusals of the system, as LakeError with the file's name."""
    try:
        yield
    except OSError as error:
        raise LakeError(f"{error.filename or path}: {error.strerror or error}") from None
