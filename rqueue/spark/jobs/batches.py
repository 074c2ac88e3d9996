"""Jobs as Arrow record batches, column by column, of the columns that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rqueue.errors import Undecodable
from rqueue.model.envelope import unpack
from rqueue.model.job import Header, parse_value
from rqueue.spark.jobs.pages import Found
from rqueue.spark.schemas import TableColumn, arrow_schema

__all__ = ["JobBatches"]

_ENVELOPE = frozenset({"task", "args", "kwargs", "labels", "headers", "problem"})
_LEVEL = Header._fields.index("level")
_GROUP = Header._fields.index("group")
_SHARE = Header._fields.index("share")
_MAX_CRASHES = Header._fields.index("max_crashes")
_EXPIRES = Header._fields.index("expires_ms")
_UNKNOWN = (None,) * len(Header._fields)
_UNREAD: tuple[None, None, None, dict[str, Any]] = (None, None, None, {})


class _Page:
    """Jobs that were found together, taken apart, each part in a list. A part that cannot be read
    is None, and `problems` says why."""

    def __init__(self, found: list[Found], deep: bool) -> None:
        self.found = found
        self.headers: list[Any] = []
        self.envelopes: list[tuple[Any, Any, Any, dict[str, Any]]] = []
        self.sizes: list[int] = []
        self.problems: list[str | None] = []
        for one in found:
            value = one.job.value
            header: Any = _UNKNOWN
            envelope: Any = _UNREAD
            body, problem = value, None
            try:
                header, body = parse_value(value)
                if deep:
                    envelope = unpack(body)
            except Undecodable as error:
                problem = str(error)
            self.headers.append(header)
            self.envelopes.append(envelope)
            self.sizes.append(len(body))
            self.problems.append(problem)

    def only(self, tasks: Collection[str] | None, levels: Collection[int] | None) -> list[bool]:
        """Leave out jobs of other tasks or levels; which ones stay."""
        kept = [
            (tasks is None or envelope[0] in tasks) and (levels is None or header[_LEVEL] in levels)
            for envelope, header in zip(self.envelopes, self.headers, strict=True)
        ]
        for name, values in vars(self).items():
            setattr(self, name, [one for one, keep in zip(values, kept, strict=True) if keep])
        return kept


def _json(values: list[Any]) -> list[str | None]:
    dumps = orjson.dumps
    return [None if value is None else dumps(value).decode() for value in values]


def _texts(values: list[Any]) -> list[list[tuple[str, str]] | None]:
    """Maps of text; other values of labels as JSON writes them."""
    return [
        [(k, v if isinstance(v, str) else orjson.dumps(v).decode()) for k, v in value.items()]
        if value and isinstance(value, dict)
        else None
        for value in values
    ]


def _dues(page: _Page) -> list[int | None]:
    return [
        (header[6] or None) if found.due_ms is None else found.due_ms
        for found, header in zip(page.found, page.headers, strict=True)
    ]


def _deliveries(page: _Page) -> list[int | None]:
    """A header counts those before the present one."""
    return [
        None if before is None else before + (found.state == "held")
        for before, found in zip(_of_header("deliveries")(page), page.found, strict=True)
    ]


def _of_header(name: str) -> Callable[[_Page], list[Any]]:
    at = Header._fields.index(name)
    return lambda page: [header[at] for header in page.headers]


_COLUMNS: dict[str, Callable[[_Page], list[Any]]] = {
    "id": lambda page: [found.job.id for found in page.found],
    "state": lambda page: [found.state for found in page.found],
    "task": lambda page: [envelope[0] for envelope in page.envelopes],
    "args": lambda page: _json([envelope[1] for envelope in page.envelopes]),
    "kwargs": lambda page: _json([envelope[2] for envelope in page.envelopes]),
    "level": _of_header("level"),
    "position": _of_header("position"),
    "group": lambda page: [header[_GROUP] or None for header in page.headers],
    "share": lambda page: [header[_SHARE] or None for header in page.headers],
    "labels": lambda page: _texts([envelope[3].get("labels") for envelope in page.envelopes]),
    "headers": lambda page: _texts([envelope[3].get("headers") for envelope in page.envelopes]),
    "enqueued": _of_header("enqueued_ms"),
    "due": _dues,
    "deliveries": _deliveries,
    "attempts": _of_header("attempts"),
    "max_deliveries": lambda page: [header[5] or None for header in page.headers],
    "crashes": _of_header("crashes"),
    "max_crashes": lambda page: [header[_MAX_CRASHES] or None for header in page.headers],
    "expires": lambda page: [header[_EXPIRES] or None for header in page.headers],
    "consumer": lambda page: [found.consumer or None for found in page.found],
    "worker": lambda page: [found.worker or None for found in page.found],
    "cause": lambda page: [
        found.cause.decode(errors="replace") if found.cause else None for found in page.found
    ],
    "size": lambda page: page.sizes,
    "problem": lambda page: page.problems,
}


class JobBatches:
    """Collects jobs of one queue, and gives them out as record batches of the chosen columns.

    tasks, levels: jobs of others are left out; None: of none.
    """

    def __init__(
        self,
        queue: str,
        columns: tuple[TableColumn, ...],
        tasks: Collection[str] | None,
        levels: Collection[int] | None,
    ) -> None:
        self.queue = queue
        self.schema = arrow_schema(columns)
        self.rows = 0
        self._tasks, self._levels = tasks, levels
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
        jobs = _Page(page, self._deep)
        if self._tasks is not None or self._levels is not None:
            kept = jobs.only(self._tasks, self._levels)
            if errors is not None:
                errors = [one for one, keep in zip(errors, kept, strict=True) if keep]
        count = len(jobs.found)
        for name, values in self._lists.items():
            if name == "errors":
                raw = errors or [None] * count
                values += [one and one.decode(errors="replace").splitlines() for one in raw]
            else:
                values += _COLUMNS[name](jobs)
        self.rows += count

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
