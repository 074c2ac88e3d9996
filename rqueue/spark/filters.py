"""Filters that Spark pushes down, on Arrow batches: rows that nobody wants never reach the JVM.

A filter is taken over only where Arrow and Spark mean the same by it; Spark applies the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rqueue.spark.schemas import TableColumn

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["apply", "asked_for", "can_apply"]

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EqualTo": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "StringStartsWith": lambda column, value: pc.starts_with(column, pattern=value),
    "StringEndsWith": lambda column, value: pc.ends_with(column, pattern=value),
    "StringContains": lambda column, value: pc.match_substring(column, pattern=value),
}
_PYTHON = {"string": str, "int": int, "bigint": int, "timestamp": datetime}


def can_apply(wanted: Filter, columns: Iterable[TableColumn]) -> bool:
    """Whether `apply` does all that this filter asks for."""
    kind = type(wanted).__name__
    if kind == "Not":
        return can_apply(wanted.child, columns)  # type: ignore[attr-defined]
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    types = {column.name: column.type for column in columns}
    if len(path) != 1 or path[0] not in types:
        return False
    if kind in ("IsNull", "IsNotNull"):
        return True
    python = _PYTHON.get(types[path[0]])
    if python is None:
        return False
    value = wanted.value  # type: ignore[attr-defined]
    if kind == "In":
        return all(type(one) is python for one in value)
    return kind in _COMPARISONS and type(value) is python


def apply(wanted: Iterable[Filter], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch that fit all filters."""
    for one in wanted:
        batch = batch.filter(_mask(one, batch))
    return batch


def asked_for(name: str, wanted: Iterable[Filter]) -> set[str] | None:
    """The values of a text column that filters leave possible; None: any."""
    found: set[str] | None = None
    for one in wanted:
        kind = type(one).__name__
        if kind in ("EqualTo", "In") and one.attribute == (name,):  # type: ignore[attr-defined]
            value = one.value  # type: ignore[attr-defined]
            values = set(value) if kind == "In" else {value}
            found = values if found is None else found & values
    return found


def _mask(wanted: Filter, batch: pa.RecordBatch) -> pa.Array:
    """True, false, or null where SQL does not know; null rows do not fit either way."""
    kind = type(wanted).__name__
    if kind == "Not":
        return pc.invert(_mask(wanted.child, batch))  # type: ignore[attr-defined]
    column = batch.column(wanted.attribute[0])  # type: ignore[attr-defined]
    if kind == "IsNull":
        return pc.is_null(column)
    if kind == "IsNotNull":
        return pc.is_valid(column)
    value = wanted.value  # type: ignore[attr-defined]
    if kind == "In":
        there = pc.is_in(column, value_set=pa.array(value, column.type))
        return pc.if_else(pc.is_valid(column), there, pa.scalar(None, pa.bool_()))
    if column.type == pa.string() and kind.startswith("String"):
        return _COMPARISONS[kind](column, value)
    return _COMPARISONS[kind](column, pa.scalar(value, column.type))
