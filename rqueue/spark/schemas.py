"""The tables that Spark sees: columns, types, units and meanings, for Spark and for Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import types as st

from rqueue.errors import ConfigError
from rqueue.model.history_batch import COLUMNS as ROW_COLUMNS

__all__ = [
    "HISTORY",
    "HISTORY_COLUMNS",
    "JOBS",
    "JOBS_COLUMNS",
    "TableColumn",
    "arrow_schema",
    "chosen",
    "markdown",
]

_TEXT, _INT, _LONG, _TIME = "string", "int", "bigint", "timestamp"
_MAP, _LIST = "map<string,string>", "array<string>"

_SPARK: dict[str, st.DataType] = {
    _TEXT: st.StringType(),
    _INT: st.IntegerType(),
    _LONG: st.LongType(),
    _TIME: st.TimestampType(),
    _MAP: st.MapType(st.StringType(), st.StringType(), True),
    _LIST: st.ArrayType(st.StringType(), True),
}
_ARROW: dict[str, pa.DataType] = {
    _TEXT: pa.string(),
    _INT: pa.int32(),
    _LONG: pa.int64(),
    _TIME: pa.timestamp("us", tz="UTC"),
    _MAP: pa.map_(pa.string(), pa.string()),
    _LIST: pa.list_(pa.field("element", pa.string())),
}


class TableColumn(NamedTuple):
    """One column of a table: its name, SQL type, unit and meaning."""

    name: str
    type: str
    unit: str
    meaning: str


# Times of a row are ms in history, and timestamps here; the rest says how wide a number is.
_TIMES = ("enqueued", "due", "acquired", "started", "finished")
_TYPES = dict.fromkeys(_TIMES, _TIME) | dict.fromkeys(("level", "attempts", "deliveries"), _INT)
_MEANINGS = {
    "group": "the job's group; null without one",
    "share": "the job's share; null without one",
    "due": "when it was last scheduled for; null = never, or at the tail since",
    "acquired": "when the worker got it; null = never",
    "started": "when the task began to run; null = it did not",
    "worker": "the worker's name; null if none had it",
    "error": "dotted name of the exception, or the kind of failure; null if none",
    "body": "the envelope; null unless the pool records it",
}


def _history_columns() -> Iterable[TableColumn]:
    yield TableColumn("queue", _TEXT, "", "the queue's name")
    yield TableColumn("entry", _TEXT, "", "id of the stream entry, ms-number: when it was written")
    yield TableColumn("row", _INT, "", "number of the row in its entry, from 0")
    for column in ROW_COLUMNS:
        if column.name in ("queue", "labels", "share"):
            continue
        kind = _TYPES.get(column.name, _TEXT if column.type is str else _LONG)
        unit = "" if kind == _TIME else column.unit
        meaning = _MEANINGS.get(column.name, column.meaning)
        yield TableColumn(column.name, kind, unit, meaning)
        if column.name == "group":
            meaning = "its labels, and headers that the pool keeps; null without any"
            yield TableColumn("labels", _MAP, "", meaning)
            yield TableColumn("share", _TEXT, "", _MEANINGS["share"])
        if column.name == "error":
            yield TableColumn("cause", _TEXT, "", "why it died or crashed, JSON; else null")


HISTORY_COLUMNS = tuple(_history_columns())
"""Of `rqueue-history`. `(queue, entry, row)` is unique, and the same in every read."""

JOBS_COLUMNS = (
    TableColumn("queue", _TEXT, "", "the queue's name"),
    TableColumn("id", _TEXT, "", "the job's id"),
    TableColumn("state", _TEXT, "", "ready, scheduled, parked, held, blocked or dead"),
    TableColumn("task", _TEXT, "", "the task's name; null if the job could not be read"),
    TableColumn("args", _TEXT, "", "positional arguments, a JSON array"),
    TableColumn("kwargs", _TEXT, "", "arguments by name, a JSON object"),
    TableColumn("level", _INT, "", "priority level, higher first"),
    TableColumn("position", _LONG, "", "the job's place among those of its level"),
    TableColumn("group", _TEXT, "", "the job's group; null without one"),
    TableColumn("share", _TEXT, "", "the job's share; null without one"),
    TableColumn("labels", _MAP, "", "the job's labels; null without any"),
    TableColumn("headers", _MAP, "", "the job's headers; null without any"),
    TableColumn("enqueued", _TIME, "", "when the queue accepted the job"),
    TableColumn("due", _TIME, "", "when it is, or was last, due; null = never, or at the tail"),
    TableColumn("deliveries", _INT, "", "times it was delivered"),
    TableColumn("attempts", _INT, "", "attempts charged"),
    TableColumn("max_deliveries", _INT, "", "attempts it may have; null = the queue's limit"),
    TableColumn("crashes", _INT, "", "attempts that cost a worker its process"),
    TableColumn("max_crashes", _INT, "", "crashes it may have; null = the limit of task or queue"),
    TableColumn("expires", _TIME, "", "not delivered any more after this; null = never"),
    TableColumn("consumer", _TEXT, "", "the consumer that holds it; null if none does"),
    TableColumn("worker", _TEXT, "", "the worker of that consumer; null if none holds it"),
    TableColumn("cause", _TEXT, "", "why it is dead or parked, JSON; else null"),
    TableColumn("errors", _LIST, "", "errors of its attempts so far, one JSON object each"),
    TableColumn("size", _LONG, "bytes", "size of the envelope"),
    TableColumn("problem", _TEXT, "", "why the job could not be read; null if it could"),
)
"""Of `rqueue`, read."""


def _spark_schema(columns: Iterable[TableColumn]) -> st.StructType:
    return st.StructType(
        [st.StructField(column.name, _SPARK[column.type], True) for column in columns]
    )


HISTORY = _spark_schema(HISTORY_COLUMNS)
JOBS = _spark_schema(JOBS_COLUMNS)


def chosen(schema: st.StructType, columns: tuple[TableColumn, ...]) -> tuple[TableColumn, ...]:
    """The columns that a schema asks for, in its order: all, or those a user named in `.schema()`.

    Raises ConfigError, naming the column that is not there or has another type.
    """
    known = {column.name: column for column in columns}
    found = []
    for wanted in schema.fields:
        column = known.get(wanted.name)
        if column is None:
            raise ConfigError(
                "schema", f"there is no column '{wanted.name}'; there are {', '.join(known)}"
            )
        if wanted.dataType != _SPARK[column.type]:
            raise ConfigError(
                "schema",
                f"column '{wanted.name}' is {column.type}, not {wanted.dataType.simpleString()}",
            )
        found.append(column)
    return tuple(found)


def arrow_schema(columns: Iterable[TableColumn]) -> pa.Schema:
    """The schema of record batches that hold these columns."""
    return pa.schema([pa.field(column.name, _ARROW[column.type]) for column in columns])


def markdown(columns: Iterable[TableColumn]) -> str:
    """The columns as a table for the docs."""
    lines = ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |" for c in columns]
    return "\n".join(lines) + "\n"
