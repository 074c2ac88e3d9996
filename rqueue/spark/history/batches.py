"""Entries of history as Arrow record batches, built column by column.

A value that is the same in all rows of an entry, and often of many entries, is not spread over the
rows before Arrow does it; ids never become Python's objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, chain, compress, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from orjson import dumps

from rqueue.errors import Undecodable
from rqueue.model.history_batch import (
    NAMES,
    Packed,
    damaged_row,
    of_later_version,
    read_entry,
    refused_rows,
    unpack_columns,
    unpack_packed,
)
from rqueue.spark.access import Access
from rqueue.spark.history.entries import Slice, pages
from rqueue.spark.schemas import TableColumn, arrow_schema

__all__ = ["HistoryBatches", "read_slice"]

ROWS = 16_384
"""Rows from which on a batch goes to Spark."""

_OPTIONAL = frozenset({"group", "share", "worker", "error", "body"})
_NUMBERS = array("i", range(1024))


def read_slice(
    access: Access, part: Slice, columns: tuple[TableColumn, ...]
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. Raises HistoryLost, Undecodable, and what Redis fails with."""
    batches = HistoryBatches(columns)
    with access.reader() as reader:
        for piece in part.ranges:
            keys = access.keys(piece.queue)
            for page in pages(reader, keys, piece.after, piece.until, exact=piece.exact):
                for id, fields in page:
                    batches.add(piece.queue, id, fields)
                    if batches.rows >= ROWS:
                        yield batches.take()
    if batches.rows:
        yield batches.take()


class HistoryBatches:
    """Collects entries, and gives them out as record batches of the chosen columns."""

    def __init__(self, columns: tuple[TableColumn, ...]) -> None:
        self.columns = columns
        self.schema = arrow_schema(columns)
        self.rows = 0
        self._ids = _Ids()
        self._numbers: list[memoryview] = []
        self._spread: dict[str, _Column] = {}
        self._clear()

    def _clear(self) -> None:
        self._ids = _Ids()
        self._numbers = []
        self._spread = {
            column.name: _Column() for column in self.columns if column.name not in ("id", "row")
        }
        self.rows = 0

    def add(self, queue: str, entry: str, fields: Mapping[bytes, bytes]) -> None:
        """Add the rows of an entry, a worker's or a script's.

        An entry that cannot be read is one row, `damaged`. Raises Undecodable for an entry of a
        later rqueue, whose rows must not be taken for read.
        """
        try:
            (count, ids, found), numbers = _columns(fields, queue)
        except Undecodable as error:
            if of_later_version(fields):
                raise Undecodable(f"entry {entry} of queue '{queue}': {error}") from None
            (count, ids, found), numbers = _written([damaged_row(queue, entry, error)])
        if not count:
            return
        found["queue"], found["entry"] = queue, entry
        for name, column in self._spread.items():
            column.add(found.get(name), count)
        self._ids.add(ids, count)
        self._numbers.append(numbers)
        self.rows += count

    def take(self) -> pa.RecordBatch:
        """All rows since the last time."""
        arrays = [self._array(column) for column in self.columns]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self._clear()
        return batch

    def _array(self, column: TableColumn) -> pa.Array:
        kind = self.schema.field(column.name).type
        if column.name == "id":
            return self._ids.array()
        if column.name == "row":
            numbers = pa.py_buffer(b"".join(self._numbers))
            return pa.Array.from_buffers(kind, self.rows, [None, numbers])
        values = self._spread[column.name]
        if pa.types.is_map(kind):
            if not any(values.each):
                return pa.nulls(self.rows, kind)
            pairs = [list(labels.items()) if labels else None for labels in values.each]
            return values.taken(pa.array(pairs, kind))
        if pa.types.is_timestamp(kind):
            times = pa.array(values.each, pa.int64())
            there = pc.not_equal(times, 0)
            stamps = pc.multiply_checked(times, 1000).view(kind)
            return values.spread(pc.if_else(there, stamps, pa.scalar(None, kind)))
        each = pa.array(values.each, kind)
        if column.name in _OPTIONAL:
            each = pc.if_else(pc.not_equal(each, ""), each, pa.scalar(None, kind))
        return values.spread(each)


class _Column:
    """Values of a column, each for so many rows in turn; or for one each, when they differ."""

    __slots__ = ("_counts", "each")

    def __init__(self) -> None:
        self.each: list[Any] = []
        self._counts: list[int] | None = []

    def add(self, values: Any, count: int) -> None:
        """So many more rows: a list, or one value for all of them."""
        counts = self._counts
        if type(values) is list:
            if counts is not None:
                self.each = list(chain.from_iterable(map(repeat, self.each, counts)))
                self._counts = None
            self.each += values
        elif counts is None:
            self.each += [values] * count
        elif counts and self.each[-1] == values and type(self.each[-1]) is type(values):
            counts[-1] += count
        else:
            self.each.append(values)
            counts.append(count)

    def spread(self, each: pa.Array) -> pa.Array:
        """An array of one value for each in `each`, over the rows."""
        if self._counts is None:
            return each
        if len(self._counts) == 1:
            return pa.repeat(each[0], self._counts[0])
        if len(each) == sum(self._counts):
            return each
        ends = pa.array(accumulate(self._counts), pa.int32())
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, each))

    def taken(self, each: pa.Array) -> pa.Array:
        """`spread` for arrays that have no runs."""
        if self._counts is None:
            return each
        numbers = chain.from_iterable(map(repeat, range(len(each)), self._counts))
        return each.take(pa.array(numbers, pa.int32()))


class _Ids:
    """Ids as an array of text."""

    def __init__(self) -> None:
        self._arrays: list[pa.Array] = []
        self._texts: list[bytes] = []
        self._width = 0

    def add(self, ids: list[str] | bytes, count: int) -> None:
        """So many more: a list, or texts of one length, one behind the other."""
        if isinstance(ids, list):
            self._close()
            self._arrays.append(pa.array(ids, pa.string()))
            return
        width = len(ids) // count
        if width != self._width:
            self._close()
            self._width = width
        self._texts.append(ids)

    def array(self) -> pa.Array:
        """All of them."""
        self._close()
        if not self._arrays:
            return pa.array([], pa.string())
        return self._arrays[0] if len(self._arrays) == 1 else pa.concat_arrays(self._arrays)

    def _close(self) -> None:
        if self._texts:
            text = pa.py_buffer(b"".join(self._texts))
            count = text.size // self._width
            offsets = _offsets(count.bit_length(), self._width).slice(0, 4 * (count + 1))
            self._arrays.append(pa.StringArray.from_buffers(count, offsets, text))
            self._texts = []


def _columns(fields: Mapping[bytes, bytes], queue: str) -> tuple[Packed, memoryview]:
    """The columns of an entry without the rows that were refused, and the rows' numbers."""
    packed = fields.get(b"b")
    if packed is None:
        return _written(read_entry(fields, queue))
    left_out = refused_rows(fields)
    if not left_out:
        found = unpack_packed(packed)
        return found, _upto(found.rows)
    columns: dict[str, Any] = dict(unpack_columns(packed))
    kept = [number not in left_out for number in range(len(columns["id"]))]
    columns = {name: list(compress(column, kept)) for name, column in columns.items()}
    ids = columns.pop("id")
    return Packed(len(ids), ids, columns), _numbers(compress(range(len(kept)), kept))


def _written(rows: list[dict[str, Any]]) -> tuple[Packed, memoryview]:
    """The columns of rows that a script wrote."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in NAMES}
    causes = [row.get("cause") for row in rows]
    columns["cause"] = [None if cause is None else dumps(cause).decode() for cause in causes]
    return Packed(len(rows), columns.pop("id"), columns), _upto(len(rows))


@lru_cache
def _offsets(bits: int, width: int) -> pa.Buffer:
    """Where texts of one length begin and the last one ends: less than 2**bits of them."""
    return pa.py_buffer(array("i", range(0, width * 2**bits, width)))


def _upto(count: int) -> memoryview:
    return memoryview(_NUMBERS)[:count] if count <= len(_NUMBERS) else _numbers(range(count))


def _numbers(numbers: Any) -> memoryview:
    return memoryview(array("i", numbers))
