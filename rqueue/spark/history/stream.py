"""History as an unbounded table: offsets, rate limit, and what Redis trimmed too early.

The offset of a queue is `<entry>/<rows>`: the last entry that was read, and how many rows were ever
written to the queue's history up to it. So the rows between two offsets are a difference; what a
stream has still to read is one too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from rqueue.logs import logger
from rqueue.protocol.commands.history import (
    BEGIN,
    HistoryEnds,
    history_news,
    history_page,
    order,
)
from rqueue.spark import schemas
from rqueue.spark.access import Access
from rqueue.spark.errors import HistoryLost
from rqueue.spark.history.batches import read_slice
from rqueue.spark.history.entries import Range, Slice, before, cut, look, sizes, slices
from rqueue.spark.options import EVERY, HistoryStream
from rqueue.spark.patience import Reader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import (
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:  # before Spark 4.2, which never asks for either

        @dataclass
        class ReadMaxRows:
            """Rows of a batch at most."""

            max_rows: int

        class SupportsTriggerAvailableNow:
            """A mark for Spark."""


P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["HistoryStreamReader", "Offset", "backlog"]

log = logger("rqueue.spark")

WAIT_MS = 500
"""How long a stream that has read all waits for news before it answers Spark that there are
none."""

SCAN_SECONDS = 5.0
"""How old the list of a namespace's queues, and of the shards of one, may be."""

_WATCHED = 500  # queues that one command waits for


class Offset(NamedTuple):
    """How far a queue was read: the last `entry`, and the `rows` ever written up to it."""

    entry: str = BEGIN
    rows: int = 0

    @classmethod
    def of(cls, text: str) -> Offset:
        """The offset that a checkpoint holds as text."""
        entry, _, rows = text.partition("/")
        return cls(entry, int(rows or 0))

    def __str__(self) -> str:
        return f"{self.entry}/{self.rows}"


def backlog(start: Mapping[str, str], end: Mapping[str, str]) -> int:
    """Rows between two offsets of all queues, as they stand in checkpoints and progress reports."""
    return sum(
        max(0, Offset.of(text).rows - Offset.of(start.get(queue, f"{BEGIN}/0")).rows)
        for queue, text in end.items()
    )


def _asks_redis(
    method: Callable[Concatenate[HistoryStreamReader, P], R],
) -> Callable[Concatenate[HistoryStreamReader, P], R]:
    """Of a method that Spark calls: what redis-py raises comes out as rqueue's errors."""

    @wraps(method)
    def call(self: HistoryStreamReader, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.access.translated():
            return method(self, *args, **kwargs)

    return call


class HistoryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the history of queues from where the checkpoint stands."""

    def __init__(self, options: HistoryStream, schema: StructType) -> None:
        self.options = options
        self.access = Access.of(options)
        self.columns = schemas.chosen(schema, schemas.HISTORY_COLUMNS)
        self._open = ExitStack()
        self._reader: Reader | None = None
        self._names: list[str] = []
        self._scanned = 0.0
        self._target: dict[str, HistoryEnds] | None = None
        self._reached: dict[str, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The copy that travels to the executors reads with connections of its own.
        kept = ("options", "access", "columns")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    # -- offsets -----------------------------------------------------------------------------------

    @_asks_redis
    def initialOffset(self) -> dict[str, str]:
        """Where a new stream begins: `since`. Raises HistoryLost when that is gone already."""
        since = self.options.since
        found = {}
        for name, ends in self._look().items():
            if since == "+":
                start = Offset(ends.last, ends.rows)
            elif since == "-":
                start = Offset(ends.trimmed, ends.gone)
            else:
                start = self._since(name, ends, before(since))
            found[name] = str(start)
        if self._reached is None:
            self._reached = found
        return found

    def _since(self, queue: str, ends: HistoryEnds, after: str) -> Offset:
        if ends.lost_after(after):
            self._lost(queue, ends, after, "rows of it")
            return Offset(ends.trimmed, ends.gone)
        keys = self.access.keys(queue)
        later = sum(rows for _, rows in sizes(self._redis(), keys, after, ends.last))
        return Offset(after, ends.rows - later)

    def getDefaultReadLimit(self) -> ReadLimit:
        """`maxRowsPerBatch`."""
        return ReadMaxRows(self.options.max_rows_per_batch)

    @_asks_redis
    def latestOffset(
        self, start: dict[str, str] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, str]:
        """How far the next batch goes; waits a moment where nothing is new, as Spark asks again
        at once. Raises HistoryLost.

        Before 4.2, Spark does not say where the batch begins; then this reader remembers it, and
        the first batch after a restart has all that there is.
        """
        start = self._reached if start is None else start
        limit = self.getDefaultReadLimit() if limit is None else limit
        if start is None:
            end = {name: str(Offset(it.last, it.rows)) for name, it in self._look().items()}
        else:
            end = self._advance(start, limit)
            if end == start and self._target is None:
                self._wait_for_news(start)
                end = self._advance(start, limit)
        self._reached = end
        return end

    @_asks_redis
    def reportLatestOffset(self) -> dict[str, str]:
        """How far there is something to read, for the progress report."""
        return {name: str(Offset(end.last, end.rows)) for name, end in self._look().items()}

    @_asks_redis
    def prepareForTriggerAvailableNow(self) -> None:
        """Note what there is: this stream ends there."""
        self._target = self._look()

    def _advance(self, start: Mapping[str, str], limit: ReadLimit) -> dict[str, str]:
        now = self._look() if self._target is None else self._target
        starts = {name: Offset.of(start.get(name, f"{BEGIN}/0")) for name in now}
        # Rows that were trimmed since the target was noted count too.
        trimmed = now if self._target is None else look(self._redis(), self.access, list(now))
        todo: dict[str, Offset] = {}
        for name, ends in now.items():
            at = starts[name]
            gone = trimmed[name]
            if gone.lost_after(at.entry):
                if name in start or self.options.queues == EVERY:
                    self._lost(name, gone, at.entry, f"{max(0, gone.gone - at.rows)} rows")
                at = Offset(gone.trimmed, gone.gone)
            if order(ends.last) > order(starts[name].entry):
                todo[name] = at
        end = {name: str(starts[name]) for name in now}
        room = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        for name, at in self._limited(todo, now, room):
            end[name] = str(at)
        # a queue whose keys are all gone stays where it is
        return {**start, **end}

    def _limited(
        self, todo: Mapping[str, Offset], now: Mapping[str, HistoryEnds], room: int | None
    ) -> Iterator[tuple[str, Offset]]:
        """How far each queue goes when all of them may have `room` rows: each its share, and what
        one leaves over is for the next; those that wait longest first."""
        waiting = {name: max(1, now[name].rows - at.rows) for name, at in todo.items()}
        total = sum(waiting.values())
        if room is None or total <= room:
            for name in todo:
                yield name, Offset(now[name].last, now[name].rows)
            return
        share = 0.0
        moved = False
        names = sorted(todo, key=lambda name: order(todo[name].entry))
        for name in names:
            share += room * waiting[name] / total
            at = self._reach(name, todo[name], now[name], int(share))
            if at is not None:
                moved = True
                share -= at.rows - todo[name].rows
                yield name, at
        if not moved:  # the first entry of each is larger than its share
            name = names[0]
            at = self._reach(name, todo[name], now[name], 0, least=1)
            yield name, at or Offset(now[name].last, now[name].rows)

    def _reach(
        self, queue: str, at: Offset, ends: HistoryEnds, room: int, least: int = 0
    ) -> Offset | None:
        """The last entry of a queue within `room` rows, `least` entries whatever they hold; None
        when there is none. A queue that has no more than that is read to its end."""
        reached = None
        rows = at.rows
        keys = self.access.keys(queue)
        for number, (id, count) in enumerate(sizes(self._redis(), keys, at.entry, ends.last)):
            if rows + count - at.rows > room and number >= least:
                return reached
            rows += count
            reached = Offset(id, rows)
        return Offset(ends.last, ends.rows)

    def _lost(self, queue: str, ends: HistoryEnds, after: str, what: str) -> None:
        """Raise HistoryLost, or go on and say what is lost."""
        if self.options.fail_on_data_loss:
            left = ends.last if ends.last != ends.trimmed else ""
            raise HistoryLost(queue, after, ends.trimmed, self._first(queue) if left else "")
        log.warning(
            "history of queue '%s' is lost: %s after entry %s, up to %s, were trimmed before they "
            "were read; going on, as failOnDataLoss=false",
            queue, what, after, ends.trimmed,
        )  # fmt: skip

    def _first(self, queue: str) -> str:
        found = self._redis().run(history_page(self.access.keys(queue), count=1))
        return found[0].id if found else ""

    # -- what is read ------------------------------------------------------------------------------

    @_asks_redis
    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Slices of about `partitionRows`, the same ones whenever a batch is repeated."""
        if self._reached is None:
            self._reached = end
        step = self.options.partition_rows
        ranges: list[Range] = []
        for name in sorted(end):
            first, last = Offset.of(start.get(name, f"{BEGIN}/0")), Offset.of(end[name])
            if order(last.entry) <= order(first.entry):
                continue
            # A queue that was added to the list begins with what there is of it.
            exact = self.options.fail_on_data_loss
            exact = exact and (name in start or self.options.queues == EVERY)
            rows = max(1, last.rows - first.rows)
            whole = Range(name, first.entry, last.entry, rows, exact)
            ranges += cut(self._redis(), self.access.keys(name), whole, step)
        return slices(ranges, step)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice, as Arrow batches. Raises HistoryLost."""
        assert isinstance(partition, Slice)
        return read_slice(self.access, partition, self.columns)

    def stop(self) -> None:
        """Close the connection."""
        self._reader = None
        self._open.close()

    # -- Redis -------------------------------------------------------------------------------------

    def _redis(self) -> Reader:
        if self._reader is None:
            self._reader = self._open.enter_context(self.access.reader())
        return self._reader

    def _look(self) -> dict[str, HistoryEnds]:
        return look(self._redis(), self.access, self._queues())

    def _queues(self) -> list[str]:
        if not self._names or time.monotonic() - self._scanned > SCAN_SECONDS:
            self._names = self.access.names(self._redis(), self.options.queues)
            self._scanned = time.monotonic()
        return self._names

    def _wait_for_news(self, start: Mapping[str, str]) -> None:
        names = self._queues()
        if not names or len(names) > _WATCHED or (self.access.cluster and len(names) > 1):
            threading.Event().wait(WAIT_MS / 1000)
            return
        after = {self.access.keys(name): Offset.of(start.get(name, BEGIN)).entry for name in names}
        self._redis().run(history_news(after, count=1, block_ms=WAIT_MS))
