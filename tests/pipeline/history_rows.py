"""History rows for tests, written by hand: times are ms after T0, names those of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rqueue.spark.schemas import HISTORY_COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T0 = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
FIRST = date(2026, 1, 1)
"""Its day."""
DAY = 86_400_000

_TIMES = ("enqueued", "due", "acquired", "started", "finished")


def moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp((T0 + ms) / 1000, UTC)


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table of history. `at`: of the entry; each row gets an entry of its own."""
    made: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        given = dict(row)
        entry = f"{T0 + given.pop('at')}-{number}"
        filled = {"queue": "a", "level": 4, "attempts": 0, "deliveries": 0, "row": 0} | given
        filled |= {name: moment(given.get(name)) for name in _TIMES}
        filled["entry"] = filled.get("entry") or entry
        made.append({column.name: filled.get(column.name) for column in HISTORY_COLUMNS})
    return pa.Table.from_pylist(made, arrow_schema(HISTORY_COLUMNS))


def frame(spark: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """The same, for Spark."""
    return spark.createDataFrame(table(rows))


def leaves(table: DataFrame) -> set[str]:
    """What a table is read from: `InMemoryRelation` is what Spark keeps. Without what refers to
    other parts of the same query."""
    plan: Any = table._jdf
    found = plan.queryExecution().withCachedData().collectLeaves()
    names = {found.apply(number).nodeName() for number in range(found.size())}
    return names - {"CTERelationRef"}


SIGSEGV = '{"kind":"crash","type":"SIGSEGV","message":"the worker process was killed"}'
BOOM = '{"kind":"exception","type":"ValueError","message":"boom"}'

MAIL: dict[str, Any] = {"queue": "a", "task": "mail", "group": "g1", "worker": "w1", "enqueued": 0}
PDF: dict[str, Any] = {"queue": "b", "task": "pdf", "group": "g2", "worker": "w2"}
BOTH, ONE = {"gpu": "1", "zone": "eu"}, {"gpu": "1"}

SCENARIO: tuple[dict[str, Any], ...] = (
    # m1: waits 100, runs 200, done at once
    MAIL | {"id": "m1", "outcome": "ack", "at": 310, "labels": BOTH}
    | {"acquired": 50, "started": 100, "finished": 300},
    # m2: waits 300, runs 400 and fails; due again at 1700, waits 100, runs 100, done
    MAIL | {"id": "m2", "outcome": "retry", "error": "TimeoutError", "at": 710, "labels": ONE}
    | {"acquired": 50, "started": 300, "finished": 700},
    MAIL | {"id": "m2", "outcome": "ack", "attempts": 1, "at": 1910, "labels": ONE}
    | {"due": 1700, "acquired": 1750, "started": 1800, "finished": 1900},
    # p1: waits 500, runs 2000 and fails; that was its last attempt
    PDF | {"id": "p1", "outcome": "retry", "error": "ValueError", "at": 3010}
    | {"enqueued": 500, "acquired": 900, "started": 1000, "finished": 3000},
    PDF | {"id": "p1", "outcome": "dead", "attempts": 0, "error": "ValueError", "cause": BOOM}
    | {"enqueued": 500, "finished": 3010, "at": 3010},
    # p2: crashes its worker twice
    PDF | {"id": "p2", "outcome": "crash", "attempts": 0, "error": "SIGSEGV", "cause": SIGSEGV}
    | {"enqueued": 600, "finished": 4000, "at": 4000},
    PDF | {"id": "p2", "outcome": "dead", "attempts": 1, "error": "SIGSEGV", "cause": SIGSEGV}
    | {"enqueued": 600, "finished": 5000, "at": 5000, "worker": "w3"},
    # p3: waits 3000, runs 500, given up by the worker
    PDF | {"id": "p3", "outcome": "dead", "error": "KeyError", "at": 4510}
    | {"enqueued": 1000, "acquired": 3900, "started": 4000, "finished": 4500},
    # p4 never ran; u1 is of a task that nobody knows
    PDF | {"id": "p4", "outcome": "cancelled", "worker": None, "finished": 6000, "at": 6000}
    | {"enqueued": 0},
    {"queue": "a", "task": "odd", "id": "u1", "outcome": "park", "error": "UnknownTask"}
    | {"worker": "w1", "enqueued": 0, "acquired": 7000, "started": 7000, "finished": 7000}
    | {"at": 7000},
    # outside of [0, 10000)
    MAIL | {"id": "early", "outcome": "ack", "at": -1, "started": -9, "finished": -1},
    MAIL | {"id": "late", "outcome": "ack", "at": 10_000, "started": 9_000, "finished": 9_990},
)  # fmt: skip
"""What the tests of metrics and of the report compute by hand."""
