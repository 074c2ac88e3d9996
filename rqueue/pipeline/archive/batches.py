"""How a batch of history becomes part of the lake.

It is written aside without what the lake has already, put into its folders, and committed in one
step; small files are merged in between, and files that are not needed any more are deleted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rqueue.model.locks import new_lock
from rqueue.pipeline.archive import compact as compaction
from rqueue.pipeline.archive.lag import Lag, measure
from rqueue.pipeline.archive.staging import Staged, StagingSource
from rqueue.pipeline.errors import LakeBusy
from rqueue.pipeline.lake.file_list import Entry, LakeFile, Snapshot
from rqueue.pipeline.lake.lake import (
    CHECKPOINT,
    SCHEMA,
    Lake,
    day_column,
    entry_id,
)
from rqueue.pipeline.missing import note_gap, trimmed
from rqueue.spark.access import Access
from rqueue.spark.history.entries import look
from rqueue.spark.registration import register_source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["CLEAN_S", "Batch", "BatchWriter", "busy"]

CLEAN_S = 900.0
"""How often a run looks for files that are no longer needed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that the lake holds now. seconds: it took; total: rows of this run so far; lag: what
    is in Redis and not yet in the lake."""

    number: int
    rows: int
    files: int
    seconds: float
    total: int
    lag: Lag


class BatchWriter:
    """One run of the archiver: what it has done so far, and how a batch is stored."""

    def __init__(
        self,
        lake: Lake,
        access: Access,
        compact: bool,
        on_batch: Callable[[Batch], None] | None,
        on_merged: Callable[[compaction.Merged], None] | None,
    ) -> None:
        self.lake = lake
        self.rows = self.batches = self.merged = 0
        self.error: Exception | None = None
        self.between = new_lock()
        """Held while a batch is stored: a thread that has it stops the run between two of them."""
        self._access = access
        self._compact = compact
        self._on_batch = on_batch
        self._on_merged = on_merged
        self._cleaned = time.monotonic()
        self._staging = lake.staging() if lake.files.local is not None else None
        self._reached: dict[str, str] | None = None

    def stream(self, options: Mapping[str, str]) -> DataFrame:
        """The kind of batches that `store` gets: rows of history, or of files that hold them
        already."""
        reader = self.lake.spark.readStream
        if self._staging is None:
            return reader.format("rqueue-history").options(**options).load()
        register_source(self.lake.spark, StagingSource)
        place = {"staging": f"{self.lake.files.local}/{self._staging}", "codec": self.lake.codec()}
        return reader.format(StagingSource.name()).options(**options, **place).load()

    def store(self, rows: DataFrame, number: int) -> None:
        """Make a batch part of the lake, without what it has already."""
        with self.between:
            try:
                began = time.monotonic()
                made = self._add(rows, number)
                self._reached = self._offsets(number)
                if not made:
                    return
                self.batches += 1
                count = sum(file.rows for file in made)
                self.rows += count
                took = time.monotonic() - began
                if self._on_batch is not None:
                    lag = measure(self._access, self._reached)
                    self._on_batch(Batch(number, count, len(made), took, self.rows, lag))
                self.tidy(time.monotonic() - self._cleaned)
            except Exception as error:
                self.error = error  # Spark would make a text of it
                raise

    def tidy(self, since_s: float) -> None:
        """Compact what is due, if wanted; delete what is not needed any more, if that is so long
        ago."""
        snapshot = self.lake.snapshot()
        for portion in compaction.portions(snapshot, worthy=True) if self._compact else ():
            for done in compaction.merge(self.lake, portion):
                self.merged += 1
                if self._on_merged is not None:
                    self._on_merged(done)
        if since_s >= CLEAN_S:
            self.lake.clean()
            self._cleaned = time.monotonic()

    def lag(self) -> Lag:
        """The rest that is not archived now. Raises the server errors."""
        if self._reached is None:
            names = self.lake.files.names(f"{CHECKPOINT}/offsets")
            numbers = [int(name) for name in names if name.isdigit()]
            self._reached = self._offsets(max(numbers)) if numbers else {}
        return measure(self._access, self._reached)

    def _offsets(self, number: int) -> dict[str, str]:
        """How far a batch goes, from the checkpoint."""
        text = self.lake.files.read_text(f"{CHECKPOINT}/offsets/{number}") or "{}"
        offsets: dict[str, str] = json.loads(text.splitlines()[-1])
        return offsets

    def _add(self, rows: DataFrame, number: int) -> list[LakeFile]:
        lake = self.lake
        before = lake.snapshot()
        marks = before.marks()
        self._note_gaps(sorted(self._offsets(number)), before, marks)
        if self._staging is None:
            new = rows.where(_beyond(marks)).withColumn("date", day_column("entry"))
            made = lake.stage(new)
        else:
            made = self._take(self._staging, rows, marks)
        if made:
            self._commit(before, made)
        return made

    def _note_gaps(self, queues: list[str], before: Snapshot, marks: Mapping[str, Entry]) -> None:
        """Note what Redis has trimmed behind what the lake holds: a batch that is read from here
        on comes after it. Noted before the batch is there, so that a kill does not forget it."""
        held = before.rows_of_queues()
        with self._access.reader() as reader:
            for queue, ends in look(reader, self._access, queues).items():
                gap = trimmed(queue, ends, marks.get(queue), held.get(queue, 0))
                if gap is not None:
                    note_gap(self.lake, gap)

    def _take(self, folder: str, rows: DataFrame, marks: Mapping[str, Entry]) -> list[LakeFile]:
        """Let tasks write a batch into files, and take over what the lake does not hold yet."""
        lake = self.lake
        try:
            files = [Staged(*row) for row in rows.collect()]
            new, partly = [], []
            for file in files:
                mark = marks.get(file.queue)
                if mark is None or Entry.of(file.first) > mark:
                    new.append(file)
                elif Entry.of(file.last) > mark:
                    partly.append(lake.files.path(f"{folder}/{file.name}"))
            made = lake.adopt(folder, map(_lake_file, new))
            if partly:  # of a batch that is not the one it was, for the checkpoint is gone
                reader = lake.reader(SCHEMA).option("basePath", lake.files.path(folder))
                made += lake.stage(reader.parquet(*partly).where(_beyond(marks)))
            return made
        finally:
            lake.files.delete(folder)

    def _commit(self, before: Snapshot, made: list[LakeFile]) -> None:
        """Add the files to those that the lake holds now, if that knows none of their rows."""
        queues = {file.queue for file in made}
        marks = before.marks()
        now = before
        while True:
            known = now.marks()
            if any(known.get(queue) != marks.get(queue) for queue in queues):
                raise busy(self.lake)
            if self.lake.commit(now, made):
                return
            now = self.lake.snapshot()


def _lake_file(file: Staged) -> LakeFile:
    last = Entry.of(file.last)
    return LakeFile(file.name, file.size, file.modified_ms, file.date, file.queue, file.rows, last)


def _beyond(marks: Mapping[str, Entry]) -> Column:
    """The rows after the marks of their queues."""
    if not marks:
        return F.lit(True)
    known = F.create_map(
        *(
            column
            for queue, mark in sorted(marks.items())
            for column in (F.lit(queue), entry_id(F.lit(str(mark))))
        )
    )
    mark = F.try_element_at(known, F.col("queue"))
    return mark.isNull() | (entry_id("entry") > mark)


def busy(lake: Lake) -> LakeBusy:
    """Another archiver adds to the same lake."""
    return LakeBusy(
        f"another archiver adds to the lake at {lake.path}; what this one read is left to it: let "
        "only one run"
    )
