"""Rows of a table as jobs: which columns it may have, what each means, and what is wrong with it.

| column | types | meaning |
| --- | --- | --- |
| `queue` | string | queue of the row; without the column, option `queue` |
| `task` | string | name of the task; without the column, option `task` |
| `args` | array, struct, or string: a JSON array | positional arguments; null: none |
| `kwargs` | struct, map of string, or string: a JSON object | arguments by name; null: none |
| `level` | a whole number, 0 to 9 | priority, higher first; null: the ordinary one, 4 |
| `delay` | seconds, a duration as text (`10m`), or an interval | due so long from now |
| `at` | timestamp, or ISO 8601 text with its zone | due then; at most one of the two |
| `max_deliveries` | a whole number | attempts in all; null: the queue's |
| `max_crashes` | a whole number | those that may crash a worker; null: as task or queue say |
| `ttl` | seconds, or a duration as text | it expires if it is not delivered by then |
| `time_limit`, `soft_time_limit`, `keep` | like `ttl` | as in `rqueue.Options` |
| `headers` | map of string, struct, or string: a JSON object | text for the job's code |
| `labels` | like `headers` | small facts for listings and reports |
| `group` | string | of the jobs of one group one is in flight at a time; null: none |
| `id` | string | the job's id; another column where option `idColumn` names it |
| `problem` | string | why the row is no job; null: it is one |

A null counts as not given. Values of structs, arrays and maps become what JSON has for them; times
become ISO 8601 text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from itertools import repeat
from typing import Any, NamedTuple, cast

import orjson
import pyarrow as pa
from pyspark.sql import types as st

from rqueue.errors import ConfigError, NotEncodable, RQueueError
from rqueue.model.envelope import pack, too_large
from rqueue.model.ids import check_id
from rqueue.model.names import check_queue, check_task
from rqueue.model.terms import NORMAL_TERMS
from rqueue.model.times import parse_duration, parse_when
from rqueue.protocol.job_packer import terms_of
from rqueue.tasks.options import Options

__all__ = ["Bad", "Job", "Table", "text_of"]


class Job(NamedTuple):
    """A row as a job: its envelope, unsigned, and what the queue must know of it (see
    `rqueue.protocol.commands.enqueue.Put.terms`). `id` is None where it is to be derived."""

    row: int
    queue: str
    id: str | None
    body: bytes
    terms: str


class Bad(NamedTuple):
    """A row that is no job, and why. `row` counts from 0 within the partition."""

    row: int
    reason: str
    record: str


# -- which columns there may be --------------------------------------------------------------------

_TEXT = (st.StringType, st.CharType, st.VarcharType)
_WHOLE = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_NUMBER = (*_WHOLE, st.FloatType, st.DoubleType)
_JSON = (*_TEXT, *_NUMBER, st.BooleanType, st.NullType, st.DateType)
_TIMES = (st.TimestampType, st.TimestampNTZType)
_OBJECT = (*_TEXT, st.MapType, st.StructType)

_TYPES: dict[str, tuple[type[st.DataType], ...]] = {
    "queue": _TEXT,
    "task": _TEXT,
    "args": (*_TEXT, st.ArrayType, st.StructType),
    "kwargs": _OBJECT,
    "level": _WHOLE,
    "delay": (*_TEXT, *_NUMBER, st.DayTimeIntervalType),
    "at": (*_TEXT, st.TimestampType),
    "max_deliveries": _WHOLE,
    "max_crashes": _WHOLE,
    "ttl": (*_TEXT, *_NUMBER),
    "time_limit": (*_TEXT, *_NUMBER),
    "soft_time_limit": (*_TEXT, *_NUMBER),
    "keep": (*_TEXT, *_NUMBER),
    "headers": _OBJECT,
    "labels": _OBJECT,
    "group": _TEXT,
    "id": _TEXT,
    "problem": _TEXT,
}
_WHEN = ("level", "delay", "at", "max_deliveries", "max_crashes", "ttl", "group")
_TRAVELS = ("headers", "labels", "time_limit", "soft_time_limit", "keep")

MEMO_MAX = 10_000
"""Different levels and due times of rows that are remembered as the queue takes them."""


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table of jobs, by their meaning: `names[i]` is that of the i-th column.

    `queue` and `task` are for rows without such columns. Raises ConfigError, naming the column.
    """

    names: tuple[str, ...]
    queue: str | None
    task: str | None
    max_body: int

    @classmethod
    def of(
        cls,
        schema: st.StructType,
        *,
        queue: str | None,
        task: str | None,
        id_column: str | None,
        max_body: int,
    ) -> Table:
        """Check a table's columns. Raises ConfigError."""
        columns = schema.fieldNames()
        if id_column is not None and id_column not in columns:
            raise ConfigError(
                "idColumn", f"there is no column '{id_column}'; there are {', '.join(columns)}"
            )
        names = []
        for field in schema.fields:
            name = "id" if field.name == id_column else field.name
            if name not in _TYPES or (name == "id" and id_column not in (None, field.name)):
                raise ConfigError(f"column '{field.name}'", _unknown(field.name))
            _check_type(field.name, name, field.dataType)
            names.append(name)
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise ConfigError(f"column '{twice[0]}'", "is there twice")
        if queue is None and "queue" not in names:
            raise ConfigError("queue", "there is no column 'queue': name the queue with the option")
        if task is None and "task" not in names:
            raise ConfigError("task", "there is no column 'task': name the task with the option")
        return cls(tuple(names), queue, task, max_body)

    @property
    def has_ids(self) -> bool:
        """Whether rows bring their ids."""
        return "id" in self.names

    def jobs(self, batch: pa.RecordBatch, first: int = 0) -> Iterator[Job | Bad]:
        """The rows of a batch, in order; `first` is the number of its first row."""
        columns = {
            name: _values(batch.column(index), name) for index, name in enumerate(self.names)
        }
        count = batch.num_rows

        def column(name: str, otherwise: Any = None) -> Iterable[Any]:
            return columns[name] if name in columns else repeat(otherwise, count)

        when = [column(name) for name in _WHEN] if columns.keys() & set(_WHEN) else None
        travels = [column(name) for name in _TRAVELS] if columns.keys() & set(_TRAVELS) else None
        reader = _Reader(self.max_body)
        rows = zip(
            range(first, first + count),
            column("problem"),
            column("queue", self.queue),
            column("id"),
            column("task", self.task),
            column("args"),
            column("kwargs"),
            repeat(None) if when is None else zip(*when, strict=True),
            repeat(None) if travels is None else zip(*travels, strict=True),
            strict=False,
        )
        ids = self.has_ids
        read = reader.read
        for row in rows:
            try:
                yield read(ids, *row)
            except (RQueueError, ValueError, TypeError) as error:
                yield Bad(row[0], str(error), text_of(batch, row[0] - first))


def text_of(batch: pa.RecordBatch, index: int) -> str:
    """A row as JSON text; what JSON does not have stands as Python writes it."""
    row = batch.slice(index, 1).to_pylist()[0]
    return orjson.dumps(row, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _unknown(name: str) -> str:
    near = ["level"] if name == "priority" else get_close_matches(name, _TYPES, n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(_TYPES)}"
    return f"a job has no such column; {hint} Drop it, or put it into kwargs"


def _check_type(column: str, name: str, kind: st.DataType) -> None:
    if not isinstance(kind, (*_TYPES[name], st.NullType)):
        known = ", ".join(dict.fromkeys(_word(one) for one in _TYPES[name]))
        raise ConfigError(f"column '{column}'", f"is {kind.simpleString()}; it may be {known}")
    if isinstance(kind, st.ArrayType | st.MapType | st.StructType) and (
        wrong := _not_json(kind, column)
    ):
        raise ConfigError(f"column '{column}'", wrong)


def _word(kind: type[st.DataType]) -> str:
    if kind in _TEXT:
        return "string"
    return "number" if kind in _NUMBER else kind.__name__.removesuffix("Type").lower()


def _not_json(kind: st.DataType, path: str) -> str | None:
    """The part of a type that has no JSON form, if there is one."""
    if isinstance(kind, st.ArrayType):
        return _not_json(kind.elementType, f"{path}[]")
    if isinstance(kind, st.MapType):
        if not isinstance(kind.keyType, _TEXT):
            return f"{path} has keys of {kind.keyType.simpleString()}; JSON has text keys only"
        return _not_json(kind.valueType, f"{path}[]")
    if isinstance(kind, st.StructType):
        found = (_not_json(field.dataType, f"{path}.{field.name}") for field in kind.fields)
        return next((wrong for wrong in found if wrong), None)
    if isinstance(kind, (*_JSON, *_TIMES)):
        return None
    return f"{path} is {kind.simpleString()}, which JSON does not have; cast it to string or double"


# -- columns of Arrow as Python's values -----------------------------------------------------------


def _values(column: pa.Array, name: str) -> list[Any]:
    kind = column.type
    if name == "at" and pa.types.is_timestamp(kind):
        ms = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
        return [None if at is None else at // 1000 for at in ms]
    if pa.types.is_map(kind):
        return _maps(column)
    if name == "args" and pa.types.is_struct(kind):
        return [None if row is None else list(row.values()) for row in _pylist(column)]
    return _pylist(column)


def _pylist(column: pa.Array) -> list[Any]:
    return cast("list[Any]", column.to_pylist(maps_as_pydicts="strict"))


def _maps(column: pa.MapArray) -> list[dict[str, Any] | None]:
    # Arrow's own way takes twenty times as long. Keys and items of a slice are those of the whole
    keys, items = column.keys.to_pylist(), _pylist(column.items)
    ends = column.offsets.to_pylist()
    there = column.is_valid().to_pylist()
    return [
        dict(zip(keys[start:end], items[start:end], strict=True)) if valid else None
        for start, end, valid in zip(ends, ends[1:], there, strict=False)
    ]


# -- one row ---------------------------------------------------------------------------------------


class _Reader:
    """Reads rows of one batch."""

    __slots__ = ("_max_body", "_memo", "_queues")

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._memo: dict[Any, str] = {}
        self._queues: set[str] = set()

    def read(
        self,
        ids: bool,
        row: int,
        problem: str | None,
        queue: str | None,
        id_: str | None,
        task: str | None,
        args: Any,
        kwargs: Any,
        when: tuple[Any, ...] | None,
        travels: tuple[Any, ...] | None,
    ) -> Job:
        """The job of a row. Raises RQueueError and ValueError, with the reason."""
        if problem is not None:
            raise ValueError(problem)
        if queue not in self._queues:
            if queue is None:
                raise ValueError("queue: is null")
            self._queues.add(check_queue(queue))
        if not task:
            raise ValueError(f"task: {'is null' if task is None else 'is empty'}")
        check_task(task)
        if ids:
            if id_ is None:
                raise ValueError("id: is null")
            check_id(id_)
        if type(args) is str:
            args = _json(args, "args", list)
        if type(kwargs) is str:
            kwargs = _json(kwargs, "kwargs", dict)
        opts = None if travels is None else _opts(*travels)
        body = pack(task, args or (), kwargs, opts)
        if len(body) > self._max_body:
            problem = too_large(len(body), self._max_body)
            raise NotEncodable("", task, problem, what="arguments")
        return Job(row, queue, id_, body, NORMAL_TERMS if when is None else self._terms(when))

    def _terms(self, when: tuple[Any, ...]) -> str:
        terms = self._memo.get(when)
        if terms is None:
            if len(self._memo) > MEMO_MAX:
                self._memo.clear()
            terms = self._memo[when] = _terms(*when)
        return terms


def _terms(
    level: int | None,
    delay: Any,
    at: Any,
    max_deliveries: int | None,
    max_crashes: int | None,
    ttl: Any,
    group: str | None,
) -> str:
    if level is not None and not 0 <= level <= 9:
        raise ConfigError("level", f"{level} is no whole number from 0 to 9")
    delay_ms = None if delay is None else _ms(delay, "delay")
    at_ms: int | None = None
    later: int | None
    if type(at) is int:
        at_ms = at
    elif at is not None:
        at_ms, later = parse_when(at, "at")
        if later is not None:
            raise ConfigError("at", f"{at!r} is no time; a duration goes into delay")
    options = Options(
        priority=level,
        at_ms=at_ms,
        delay_ms=delay_ms,
        max_deliveries=max_deliveries or None,
        max_crashes=max_crashes or None,
        ttl=_seconds(ttl, "ttl"),
        group=group,
    )
    return terms_of(options)


def _opts(
    headers: Any, labels: Any, time_limit: Any, soft_time_limit: Any, keep: Any
) -> dict[str, Any] | None:
    if headers is labels is time_limit is soft_time_limit is keep is None:
        return None
    return Options(
        headers=_object(headers, "headers"),
        labels=_object(labels, "labels"),
        time_limit=_seconds(time_limit, "time_limit"),
        soft_time_limit=_seconds(soft_time_limit, "soft_time_limit"),
        keep=_seconds(keep, "keep"),
    ).to_opts()


def _object(value: Any, name: str) -> dict[str, Any]:
    found = _json(value, name, dict) if type(value) is str else value or {}
    return {key: item for key, item in found.items() if item is not None}


def _seconds(value: Any, name: str) -> float | None:
    return None if value is None else parse_duration(value, name)


def _ms(value: float | str | timedelta, name: str) -> int:
    return round(parse_duration(value, name) * 1000)


_KINDS: dict[Callable[..., Any], str] = {list: "array", dict: "object"}


def _json(text: str, name: str, kind: type) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{name}: is no JSON ({error})") from None
    if type(value) is not kind:
        raise ValueError(f"{name}: is not a JSON {_KINDS[kind]}")
    return value
