"""Jobs as Arrow record batches, column by column, of the columns that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rqueue.codec import unpack
from rqueue.errors import Undecodable
from rqueue.job import Header
from rqueue.spark.job_pages import Found
from rqueue.spark.schemas import TableColumn, arrow_schema

__all__ = ["JobBatches"]

_UNKNOWN = Header(0, 0)
_ENVELOPE = frozenset({"task", "args", "kwargs", "labels", "headers", "problem"})


class _Row:
    """One job, taken apart. What cannot be read is None, and `problem` says why."""

    __slots__ = ("args", "found", "header", "kwargs", "opts", "problem", "task")

    def __init__(self, found: Found, deep: bool) -> None:
        self.found = found
        self.header: Header | None = None
        self.task: str | None = None
        self.args: list[Any] | None = None
        self.kwargs: dict[str, Any] | None = None
        self.opts: dict[str, Any] = {}
        self.problem: str | None = None
        try:
            self.header = found.job.header
            if deep:
                self.task, self.args, self.kwargs, self.opts = unpack(found.job.body)
        except Undecodable as error:
            self.problem = str(error)


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _texts(value: Any) -> list[tuple[str, str]] | None:
    """A map of text; other values of labels as JSON writes them."""
    if not isinstance(value, dict) or not value:
        return None
    return [(k, v if isinstance(v, str) else orjson.dumps(v).decode()) for k, v in value.items()]


def _text(raw: bytes) -> str | None:
    return raw.decode(errors="replace") or None


def _due(row: _Row) -> int | None:
    if row.found.due_ms is not None:
        return row.found.due_ms
    return (row.header or _UNKNOWN).due_ms or None


def _of_header(name: str) -> Callable[[_Row], Any]:
    return lambda row: None if row.header is None else getattr(row.header, name)


_COLUMNS: dict[str, Callable[[_Row], Any]] = {
    "id": lambda row: row.found.job.id,
    "state": lambda row: row.found.state,
    "task": lambda row: row.task,
    "args": lambda row: _json(row.args),
    "kwargs": lambda row: _json(row.kwargs),
    "level": _of_header("level"),
    "position": _of_header("position"),
    "group": lambda row: None,
    "labels": lambda row: _texts(row.opts.get("labels")),
    "headers": lambda row: _texts(row.opts.get("headers")),
    "enqueued": lambda row: row.header.enqueued_ms if row.header else None,
    "due": _due,
    "deliveries": _of_header("deliveries"),
    "attempts": _of_header("attempts"),
    "max_deliveries": lambda row: (row.header or _UNKNOWN).max_deliveries or None,
    "consumer": lambda row: row.found.consumer or None,
    "worker": lambda row: row.found.worker or None,
    "cause": lambda row: _text(row.found.cause),
    "size": lambda row: len(row.found.job.value if row.header is None else row.found.job.body),
    "problem": lambda row: row.problem,
}


class JobBatches:
    """Collects jobs of one queue, and gives them out as record batches of the chosen columns.

    tasks: jobs of other tasks are left out; None: of none.
    """

    def __init__(
        self, queue: str, columns: tuple[TableColumn, ...], tasks: Collection[str] | None
    ) -> None:
        self.queue = queue
        self.schema = arrow_schema(columns)
        self.rows = 0
        self._tasks = tasks
        self._deep = tasks is not None or not _ENVELOPE.isdisjoint(self.schema.names)
        self._lists: dict[str, list[Any]] = {}
        self._clear()

    def _clear(self) -> None:
        self._lists = {name: [] for name in self.schema.names if name != "queue"}
        self.rows = 0

    @property
    def wants_errors(self) -> bool:
        """Whether `add` is to be given the attempts' errors."""
        return "errors" in self._lists

    def add(self, page: list[Found], errors: list[bytes | None] | None = None) -> None:
        """Add jobs; `errors` of each, as they are stored."""
        rows = [_Row(found, self._deep) for found in page]
        if self._tasks is not None:
            kept = [row.task in self._tasks for row in rows]
            if errors is not None:
                errors = [one for one, keep in zip(errors, kept, strict=True) if keep]
            rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
        for name, values in self._lists.items():
            if name == "errors":
                raw = errors or [None] * len(rows)
                values += [one and one.decode(errors="replace").splitlines() for one in raw]
            else:
                values += map(_COLUMNS[name], rows)
        self.rows += len(rows)

    def take(self) -> pa.RecordBatch:
        """All jobs since the last time."""
        arrays = [self._array(field) for field in self.schema]
        # without columns an Arrow batch has no rows: a count of them asks for one
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self._clear()
        return batch

    def _array(self, field: pa.Field) -> pa.Array:
        if field.name == "queue":
            return pa.repeat(pa.scalar(self.queue, field.type), self.rows)
        values = self._lists[field.name]
        if pa.types.is_timestamp(field.type):
            return pc.multiply_checked(pa.array(values, pa.int64()), 1000).view(field.type)
        return pa.array(values, field.type)
