"""Rows that a table of history lacks, because Redis trimmed them before they were read.

Redis keeps the newest `history_rows_max` rows of a queue. A row that it has trimmed and the lake
does not hold is nowhere. Two things show it: the mark and the count that each queue keeps of what
was trimmed, and the notes of the archiver, which writes one where it goes on behind a gap
(`--allow-loss`):

::

    <lake>/_rqueue/gaps/<name made of queue and after>.json    queue, after, until, rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake.file_list import Entry
from rqueue.pipeline.lake.lake import Lake
from rqueue.protocol.commands.history import BEGIN, HistoryEnds, order
from rqueue.spark.access import Access
from rqueue.spark.history.entries import look
from rqueue.spark.options import HistoryRead, read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Missing", "gaps", "missing", "note_gap", "trimmed"]

_FOLDER = "_rqueue/gaps"


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows of a queue's history that are lost: of entries behind `after`, up to `until`.

    rows: so many at the most; None where that is not known. in_lake: noted by the archiver.
    """

    queue: str
    after: str
    until: str
    rows: int | None
    in_lake: bool = False

    @property
    def until_ms(self) -> int:
        """When the last of them was written."""
        return order(self.until)[0]

    def within(self, start_ms: int, end_ms: int) -> bool:
        """Whether some of them may be of this range."""
        return order(self.after)[0] < end_ms and self.until_ms >= start_ms

    def __str__(self) -> str:
        count = "rows" if self.rows is None else f"{self.rows:,} rows"
        until = datetime.fromtimestamp(self.until_ms / 1000, UTC).isoformat(timespec="seconds")
        where = "before they were archived" if self.in_lake else "before they were read"
        return (
            f"queue '{self.queue}': Redis trimmed {count} of history {where}, the last of them of "
            f"{until}; the figures lack those of this range (history_rows_max keeps more)"
        )


def missing(
    spark: SparkSession,
    start_ms: int,
    end_ms: int,
    *,
    lake: str | None = None,
    live: Mapping[str, str] | None = None,
    queues: Sequence[str] = (),
) -> list[Missing]:
    """The rows that `rqueue.pipeline.table.history` lacks for the same arguments; by queue and age.

    Raises as that does.
    """
    found: list[Missing] = []
    marks: Mapping[str, Entry] = {}
    wanted = set(queues)
    held: Mapping[str, int] = {}
    if lake is not None:
        it = Lake(spark, lake)
        snapshot = it.require()
        marks, held = snapshot.marks(), snapshot.rows_of_queues()
        found += gaps(it)
    if live is not None:
        options = read_options(HistoryRead, live)
        access = Access.of(options)
        with access.reader() as reader:
            names = access.names(reader, list(queues or options.queues))
            wanted |= set(names) if queues else set()
            for queue, ends in look(reader, access, names).items():
                gap = trimmed(queue, ends, marks.get(queue), held.get(queue, 0))
                if gap is not None:
                    found.append(gap)
    found = [
        gap for gap in found if gap.within(start_ms, end_ms) and (not queues or gap.queue in wanted)
    ]
    return sorted(found, key=lambda gap: (gap.queue, order(gap.after)))


def trimmed(queue: str, ends: HistoryEnds, mark: Entry | None, held: int) -> Missing | None:
    """The rows that Redis has trimmed of a queue behind a lake's mark, of which the lake holds
    `held` rows; None if that is nothing."""
    after = BEGIN if mark is None else str(mark)
    if not ends.lost_after(after):
        return None
    # Redis counts rows that were refused too, and begins anew for a queue that was deleted.
    rows = ends.gone - held
    return Missing(queue, after, ends.trimmed, rows if rows > 0 else None)


# -- notes in the lake -----------------------------------------------------------------------------


def note_gap(lake: Lake, gap: Missing) -> None:
    """Note for good that the lake lacks these rows; the same gap again replaces the note."""
    document = asdict(gap)
    del document["in_lake"]
    name = sha256(f"{gap.queue}\0{gap.after}".encode()).hexdigest()[:24]
    lake.files.replace(f"{_FOLDER}/{name}.json", json.dumps(document))


def gaps(lake: Lake) -> list[Missing]:
    """The gaps that are noted in a lake. Raises LakeError."""
    found = []
    for name in lake.files.names(_FOLDER):
        if not name.endswith(".json"):
            continue
        text = lake.files.read_text(f"{_FOLDER}/{name}") or ""
        try:
            said = json.loads(text)
            found.append(Missing(**said, in_lake=True))
        except (ValueError, TypeError) as error:
            path = lake.files.path(f"{_FOLDER}/{name}")
            raise LakeError(f"{path} is no note of a gap: {error}") from None
    return found
