"""The work that a replay has done: one line of JSON for each job, in a folder that outlives Redis's
memory.

::

    <folder>/_rqueue/replays/<name>/<ms>-<random>.jsonl    queue, id, position, replayed_as, at

A file appears whole, after all of its jobs are enqueued. Files are never changed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import orjson
from pyspark.sql import functions as F

from rqueue.pipeline.lake.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Done", "Ledger"]

_REPLAYS = "_rqueue/replays"
SCHEMA = "queue string, id string, position bigint, replayed_as string, at bigint"


class Done(NamedTuple):
    """A job that was enqueued again: where it was, under which id and position (0: not known), the
    id that it has now, and when (ms since the epoch)."""

    queue: str
    id: str
    position: int
    replayed_as: str
    at: int


class Ledger:
    """The lines of the replay `name` in a folder or URL."""

    def __init__(self, spark: SparkSession, folder: str, name: str) -> None:
        self._spark = spark
        self._files = Files(spark, folder)
        self._name = name
        self._place = f"{_REPLAYS}/{name}"

    @property
    def path(self) -> str:
        """Where it is, in full."""
        return self._files.path(self._place)

    def done(self) -> DataFrame:
        """All lines so far, each job once."""
        names = [name for name in self._files.names(self._place) if name.endswith(".jsonl")]
        if not names:
            return self._spark.createDataFrame([], SCHEMA)
        lines = self._spark.read.schema(SCHEMA).json(self.path)
        return lines.dropDuplicates(["queue", "id"])

    def of_others(self, jobs: DataFrame) -> dict[str, int]:
        """How many of these jobs (queue, id) the other replays of the folder have done, by name."""
        names = [name for name in self._files.names(_REPLAYS) if name != self._name]
        if not names:
            return {}
        reader = self._spark.read.schema(SCHEMA)
        lines = reader.json([self._files.path(f"{_REPLAYS}/{name}") for name in sorted(names)])
        name = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -2)
        noted = lines.select("queue", "id", name.alias("name")).distinct()
        counts = noted.join(jobs.select("queue", "id"), ["queue", "id"]).groupBy("name").count()
        return {row["name"]: row["count"] for row in counts.orderBy("name").collect()}

    def add(self, done: Iterable[Done]) -> None:
        """Note that these are done. Raises LakeError."""
        text = "".join(f"{orjson.dumps(one._asdict()).decode()}\n" for one in done)
        name = f"{round(time.time() * 1000)}-{uuid.uuid4().hex}.jsonl"
        if not self._files.create(f"{self._place}/{name}", text):
            raise AssertionError("a random name was taken")
