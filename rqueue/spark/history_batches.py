"""Entries of history as Arrow record batches, built column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from orjson import dumps

from rqueue.errors import Undecodable
from rqueue.history import read_entry, unpack_columns
from rqueue.spark.access import Access
from rqueue.spark.entries import Slice, pages
from rqueue.spark.schemas import TableColumn, arrow_schema

__all__ = ["HistoryBatches", "read_slice"]

ROWS = 16_384
"""Rows from which on a batch goes to Spark."""

_OPTIONAL = frozenset({"group", "worker", "error", "body"})
_ALWAYS_NULL = frozenset({"labels"})


def read_slice(
    access: Access, part: Slice, columns: tuple[TableColumn, ...]
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. Raises HistoryLost, Undecodable, and what Redis fails with."""
    batches = HistoryBatches(columns)
    with access.client() as client:
        for piece in part.ranges:
            keys = access.keys(piece.queue)
            for page in pages(client, keys, piece.after, piece.until, exact=piece.exact):
                for id, fields in page:
                    batches.add(piece.queue, id.decode(), fields)
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
        self._clear()

    def _clear(self) -> None:
        self._lists: dict[str, list[Any]] = {
            column.name: [] for column in self.columns if column.name not in _ALWAYS_NULL
        }
        self._entries: list[tuple[str, str]] = []
        self.rows = 0

    def add(self, queue: str, entry: str, fields: Mapping[bytes, bytes]) -> None:
        """Add the rows of an entry, whoever wrote it. Raises Undecodable."""
        try:
            found, numbers = _columns(fields, queue)
        except Undecodable as error:
            raise Undecodable(f"entry {entry} of queue '{queue}': {error}") from None
        count = len(numbers)
        found |= {"queue": [queue] * count, "entry": [entry] * count, "row": numbers}
        for name, values in self._lists.items():
            values += found[name] if name in found else [None] * count
        self._entries.append((queue, entry))
        self.rows += count

    def take(self) -> pa.RecordBatch:
        """All rows since the last time. Raises Undecodable."""
        try:
            arrays = [self._array(column) for column in self.columns]
        except (pa.ArrowException, OverflowError) as error:
            (queue, first), (_, last) = self._entries[0], self._entries[-1]
            said = f"a row of queue '{queue}' in {first} to {last} is not history ({error})"
            raise Undecodable(said) from None
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self._clear()
        return batch

    def _array(self, column: TableColumn) -> pa.Array:
        kind = self.schema.field(column.name).type
        if column.name in _ALWAYS_NULL:
            return pa.nulls(self.rows, kind)
        values = self._lists[column.name]
        if pa.types.is_timestamp(kind):
            times = pa.array(values, pa.int64())
            there = pc.not_equal(times, 0)
            stamps = pc.multiply_checked(times, 1000).view(kind)
            return pc.if_else(there, stamps, pa.scalar(None, kind))
        array = pa.array(values, kind)
        if column.name in _OPTIONAL:
            array = pc.if_else(pc.not_equal(array, ""), array, pa.scalar(None, kind))
        return array


def _columns(fields: Mapping[bytes, bytes], queue: str) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of an entry without the rows that were refused, and the rows' numbers."""
    packed = fields.get(b"b")
    if packed is None:
        return _written(read_entry(fields, queue))
    columns = unpack_columns(packed)
    count = len(columns["id"])
    numbers = list(range(count))
    if refused := fields.get(b"r"):
        left_out = set(map(int, refused.split(b",")))
        kept = [number not in left_out for number in numbers]
        columns = {name: list(compress(column, kept)) for name, column in columns.items()}
        numbers = list(compress(numbers, kept))
    return columns, numbers


def _written(rows: list[dict[str, Any]]) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of rows that a script wrote."""
    columns: dict[str, list[Any]] = {}
    for name in rows[0] if rows else ():
        columns[name] = [row[name] for row in rows]
    causes = [row.get("cause") for row in rows]
    columns["cause"] = [None if cause is None else dumps(cause).decode() for cause in causes]
    return columns, list(range(len(rows)))
