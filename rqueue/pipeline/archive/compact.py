"""Compaction: the many small files of a day and queue become few.

Their replacement is written beside them, where no reader looks, and takes their place in one step,
the lake's next list. A reader has the old files or the new ones; killed at any moment, it changed
nothing or all of a portion; done again, it finds nothing to do. The old files stay for an hour, for
those who read them.

A list without the old files is a whole one, so folders are merged in portions that are worth it: a
tenth of the lake's files at least. An archiver waits until so much has come together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import ceil
from typing import TYPE_CHECKING

from pyspark.sql import types as st
from pyspark.sql.functions import col

from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake.file_list import LakeFile, Snapshot
from rqueue.pipeline.lake.lake import KEEP_S, Lake, day_of, entry_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TARGET_BYTES", "Compaction", "Merged", "compact", "due", "merge", "portions"]

TARGET_BYTES = 128 * 1024**2
"""Size of a file that is left alone, and about that of what small ones become."""

MOST_FILES = 100
"""Small files of a day that is not over, at which they become one."""

_WORTH = 10  # a whole list is written for a tenth of its lines at least


@dataclass(frozen=True, slots=True)
class Merged:
    """One folder that was compacted: so many files became so many."""

    date: date
    queue: str
    before: int
    after: int
    rows: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """The work of a compaction: the folders, and how many old files were deleted."""

    merged: tuple[Merged, ...]
    deleted: int


def compact(
    spark: SparkSession,
    path: str,
    *,
    today: date | None = None,
    target_bytes: int = TARGET_BYTES,
    keep_s: float = KEEP_S,
    on_merged: Callable[[Merged], None] | None = None,
) -> Compaction:
    """Merge the small files of days that are over, and delete what was replaced `keep_s` ago.

    today: the UTC day that is not over. Raises ConfigError if there is no lake, and LakeError.
    """
    lake = Lake(spark, path)
    merged = []
    for portion in portions(lake.require(), today, target_bytes):
        for done in merge(lake, portion, target_bytes):
            merged.append(done)
            if on_merged is not None:
                on_merged(done)
    return Compaction(tuple(merged), lake.clean(keep_s))


def due(
    snapshot: Snapshot, today: date | None = None, target_bytes: int = TARGET_BYTES
) -> list[list[LakeFile]]:
    """The files to merge, by folder.

    Those of a day that is over, once the queue's history is archived beyond that day, or the day
    is over for long; those of today when they are very many. Only if it makes them fewer.
    """
    today = datetime.now(UTC).date() if today is None else today
    marks = snapshot.marks()
    folders: dict[str, list[LakeFile]] = defaultdict(list)
    for file in snapshot.files:
        if file.size < target_bytes:
            folders[file.folder].append(file)
    found = []
    for _, files in sorted(folders.items()):
        over = files[0].date < today and (
            day_of(marks[files[0].queue].ms) > files[0].date or (today - files[0].date).days > 1
        )
        if len(files) > (1 if over else MOST_FILES) and _pieces(files, target_bytes) < len(files):
            found.append(files)
    return found


def portions(
    snapshot: Snapshot,
    today: date | None = None,
    target_bytes: int = TARGET_BYTES,
    *,
    worthy: bool = False,
) -> Iterator[list[list[LakeFile]]]:
    """The folders that are due, as many at a time as are worth a whole list; at last, unless all
    must be `worthy`, the others."""
    portion: list[list[LakeFile]] = []
    for files in due(snapshot, today, target_bytes):
        portion.append(files)
        if sum(map(len, portion)) * _WORTH >= len(snapshot.files):
            yield portion
            portion = []
    if portion and not worthy:
        yield portion


def merge(
    lake: Lake, folders: Sequence[Sequence[LakeFile]], target_bytes: int = TARGET_BYTES
) -> list[Merged]:
    """Let new files take the place of these, folder by folder, in one step; but not of those that
    are no longer there. Returns what was done.

    Rows keep every column, also those that this rqueue does not know. Raises LakeError, after the
    folders before the one at fault were done.
    """
    written: list[tuple[Sequence[LakeFile], list[LakeFile]]] = []
    try:
        for files in folders:
            written.append((files, _rewrite(lake, files, target_bytes)))
    except LakeError:
        _replace(lake, written)
        raise
    return _replace(lake, written)


def _replace(
    lake: Lake, written: Sequence[tuple[Sequence[LakeFile], list[LakeFile]]]
) -> list[Merged]:
    while True:
        now = lake.snapshot()
        there = {file.name for file in now.files}
        done = [(old, new) for old, new in written if all(file.name in there for file in old)]
        added = [file for _, new in done for file in new]
        if not done or lake.commit(now, added, {file.name for old, _ in done for file in old}):
            break
    for old, new in written:
        if (old, new) not in done:
            _drop(lake, new)
    return [
        Merged(old[0].date, old[0].queue, len(old), len(new), sum(file.rows for file in new))
        for old, new in done
    ]


def _rewrite(lake: Lake, files: Sequence[LakeFile], target_bytes: int) -> list[LakeFile]:
    """Write the rows of files of one folder into larger ones, which no reader sees yet."""
    schema = lake.check_schema()
    inside = st.StructType([f for f in schema.fields if f.name not in ("date", "queue")])
    rows = (
        lake.reader(st.StructType([*inside.fields, schema["date"], schema["queue"]]))
        .option("basePath", lake.path)
        .parquet(*(lake.files.path(file.name) for file in files))
    )
    order = [entry_id("entry"), col("row")]
    pieces = _pieces(files, target_bytes)
    parts = rows.coalesce(1) if pieces == 1 else rows.repartitionByRange(pieces, *order)
    # first by what the folders are named after, or Spark would sort anew when it writes
    made = lake.stage(parts.sortWithinPartitions("date", "queue", *order))
    count = sum(file.rows for file in made)
    if count != sum(file.rows for file in files):
        _drop(lake, made)
        raise LakeError(
            f"{lake.files.path(files[0].folder)} holds {count} rows, the lake's list says "
            f"{sum(file.rows for file in files)}: left as it is"
        )
    return made


def _drop(lake: Lake, made: Sequence[LakeFile]) -> None:
    for file in made:
        lake.files.delete(file.name)


def _pieces(files: Sequence[LakeFile], target_bytes: int) -> int:
    return max(1, ceil(sum(file.size for file in files) / target_bytes))
