"""History as one table: what the lake holds, and after it what only Redis has yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rqueue.pipeline.lake import Entry, Lake, day_of, entry_id
from rqueue.spark import register
from rqueue.spark.access import Access
from rqueue.spark.options import EVERY, HistoryRead, read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["history"]


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
    only these. Raises ConfigError, LakeError, and what Redis fails with.
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
    if live is not None:
        register(spark)
        for since, names in _missing(live, queues, marks, start_ms, end_ms).items():
            given = {**live, "since": since, "until": str(end_ms - 1), "queues": _names(names)}
            parts.append(spark.read.format("rqueue-history").options(**given).load())
    if not parts:
        from rqueue.spark.schemas import HISTORY

        return spark.createDataFrame([], HISTORY)
    return reduce(lambda one, other: one.unionByName(other), parts)


def _missing(
    live: Mapping[str, str],
    queues: Sequence[str],
    marks: Mapping[str, Entry],
    start_ms: int,
    end_ms: int,
) -> dict[str, list[str]]:
    """The queues to be read from Redis, by the entry from which on."""
    options = read_options(HistoryRead, live)
    names = list(queues or options.queues)
    if not queues and options.queues == EVERY:
        access = Access.of(options)
        with access.client() as client:
            names = access.queue_names(client)
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        mark = marks.get(name)
        if mark is None or mark.ms < start_ms:
            found[str(start_ms)].append(name)
        elif mark.ms < end_ms:
            found[f"{mark.ms}-{mark.number + 1}"].append(name)
    return found


def _names(queues: Sequence[str]) -> str:
    return ",".join(name.replace(",", "\\,") for name in queues)
