"""Spark on local[2], in this process, for the rows that measure it; only they import this."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.lab.bench import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER = "local[2]"


def spark_here() -> SparkSession:
    """The session, started or still running; it ends with this process."""
    from rqueue.spark import session

    folder = tempfile.gettempdir()
    more: dict[str, Any] = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": folder,
    }
    return session(MASTER, "rqueue-bench", **more)


def place(bench: Bench, **options: Any) -> dict[str, str]:
    """Options of rqueue's sources for the bench's server and queue."""
    return {"url": bench.url, **{name: str(value) for name, value in options.items()}}


def history(bench: Bench, spark: SparkSession) -> DataFrame:
    """The history of the bench's queue."""
    options = place(bench, queues="bench")
    return spark.read.format("rqueue-history").options(**options).load()


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for a while."""
    with tempfile.TemporaryDirectory(prefix="rqueue-bench-spark-") as name:
        yield Path(name)


def to_parquet(frame: DataFrame, path: Path, rows: int) -> float:
    """Rows a second into Parquet files; AssertionError if they are not all there afterwards."""
    begin = time.perf_counter()
    frame.write.mode("overwrite").parquet(str(path))
    took = time.perf_counter() - begin
    stored = frame.sparkSession.read.parquet(str(path)).count()
    if stored != rows:
        raise AssertionError(f"{stored} of {rows} rows were stored")
    return rows / took
