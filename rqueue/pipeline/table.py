"""History as one table: what the lake holds, and after it what only Redis has yet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rqueue.pipeline.lake.file_list import Entry
from rqueue.pipeline.lake.lake import Lake, day_of, entry_id
from rqueue.spark import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["history", "named"]


def history(
    spark: SparkSession,
    start_ms: int,
    end_ms: int,
    *,
    lake: str | None = None,
    live: Mapping[str, str] | None = None,
    queues: Sequence[str] = (),
) -> DataFrame:
    """Rows whose entry was written in [start_ms, end_ms), each once, in the columns of `HISTORY`.

    lake: its path. live: options of `rqueue-history` for the Redis that has the newest rows; of
    each queue those are read that come after what the lake holds. At least one of both. queues:
    only these. `rqueue.pipeline.missing` says which rows it lacks. Raises ConfigError,
    LakeError, and what Redis fails with.
    """
    parts: list[DataFrame] = []
    marks: Mapping[str, Entry] = {}
    if lake is not None:
        frame, snapshot = Lake(spark, lake).read()
        marks = snapshot.marks()
        days = F.col("date").between(day_of(start_ms), day_of(max(start_ms, end_ms - 1)))
        written = entry_id("entry")["ms"]
        frame = frame.where(days & (written >= start_ms) & (written < end_ms)).drop("date")
        parts.append(frame.where(F.col("queue").isin(*queues)) if queues else frame)
    if live is not None and start_ms < end_ms:
        register(spark)
        given = {**live, "since": str(max(0, start_ms)), "until": str(end_ms - 1)}
        if marks:
            given["after"] = json.dumps({queue: str(mark) for queue, mark in marks.items()})
        if queues:
            given["queues"] = named(queues)
        parts.append(spark.read.format("rqueue-history").options(**given).load())
    if not parts:
        from rqueue.spark.schemas import HISTORY

        return spark.createDataFrame([], HISTORY)
    return reduce(lambda one, other: one.unionByName(other), parts)


def named(queues: Sequence[str]) -> str:
    """Names of queues as the option `queues` takes them."""
    return ",".join(name.replace(",", "\\,") for name in queues)
