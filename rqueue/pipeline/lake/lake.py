"""The lake: history as Parquet files in folders by date and queue, and what it is made of.

::

    <lake>/date=2030-01-31/queue=mail/part-....parquet    the rows
    <lake>/_spark_metadata/                               which files count, and how far it is
    <lake>/_rqueue/schema.json, checkpoint/, staging/     the archiver's own

**Which rows are in it** is said by the lists in `_spark_metadata` alone (see
`rqueue.pipeline.lake.file_list`); other files count for nothing. A change (a batch that is added,
small files that one replaces) is one new list, which appears at once or not at all; of two writers
one finds that the other was faster and has to look again.

**How far it is** stands there too: the last entry of each queue (its *mark*). Entries of a queue
are archived in their order, so that everything up to the mark is there, once.

**Its columns** (`HISTORY`, and `date`) may be added to, and nothing else: no column ever changes
its name, type or meaning, or goes away. A column that a file does not have is null. A reader that
is older than the lake reads the columns that it knows; a writer that is older leaves the others
null. A column of another type is refused, on both sides.

`date` is the UTC day of the entry's id, that is: when the row was written.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql import types as st

from rqueue.pipeline.errors import LakeError, no_lake
from rqueue.pipeline.lake.file_list import Entry, FileList, LakeFile, Snapshot
from rqueue.pipeline.lake.files import DRAFTS, FileInfo, Files
from rqueue.spark.schemas import HISTORY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

__all__ = [
    "CHECKPOINT",
    "KEEP_S",
    "SCHEMA",
    "STAGING",
    "Lake",
    "day_column",
    "day_of",
    "entry_id",
    "read",
]

CHECKPOINT = "_rqueue/checkpoint"
STAGING = "_rqueue/staging"
KEEP_S = 3600.0
"""How long files stay that others have replaced: a reader may have begun with them."""

SCHEMA = st.StructType(
    [
        *(field for field in HISTORY.fields if field.name != "queue"),
        st.StructField("date", st.DateType(), True),
        st.StructField("queue", st.StringType(), True),
    ]
)
"""Columns of the files, and the two that their folders name."""

_KEYS = "entry string, date date, queue string"
_SCHEMA_FILE = "_rqueue/schema.json"
_FORMAT = 1
_ABANDONED_S = 24 * 3600.0  # no writer takes so long from its first file to its list
_FOLDERS = re.compile(r"date=(\d{4}-\d\d-\d\d)/queue=([^/]+)/[^/_.][^/]*\.parquet")


class Lake:
    """A lake at a path: a folder, or a URL that this Spark reads and writes."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.files = Files(spark, path)
        self._list = FileList(self.files)

    @property
    def path(self) -> str:
        """Where it is, in full."""
        return self.files.root

    # -- reading -----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Its contents now. Raises LakeError for a list that cannot be read."""
        return self._list.snapshot()

    def require(self) -> Snapshot:
        """Its contents. Raises ConfigError if there is no lake, or nothing in it."""
        snapshot = self.snapshot()
        if not snapshot.files:
            raise no_lake(self.path)
        return snapshot

    def read(self) -> tuple[DataFrame, Snapshot]:
        """Its rows, in the columns of `HISTORY` and `date`, and the moment that they are of.

        The files are settled now; what is added later is not in it. They stay for an hour after
        others have replaced them. Raises ConfigError, and LakeError.
        """
        self.check_schema()
        reader = self.reader(SCHEMA)
        while True:
            snapshot = self.require()
            if not snapshot.moved:
                frame = reader.parquet(self.path)
                # Spark has read the list on its own: was it this one?
                if self._list.version() != snapshot.version:
                    continue
            else:
                # the lake was moved, or is seen under another name: its list has the old one
                frame = reader.option("basePath", self.path).parquet(
                    *(self.files.path(file.name) for file in snapshot.files)
                )
            return frame.select(*HISTORY.names, "date"), snapshot

    def reader(self, schema: st.StructType | str) -> DataFrameReader:
        """Spark's reader, to which a `*` or `[` in a path is nothing but that."""
        return self.spark.read.schema(schema).option("__globPaths__", "false")

    # -- changing ----------------------------------------------------------------------------------

    def commit(
        self, before: Snapshot, added: Iterable[LakeFile], gone: Collection[str] = ()
    ) -> bool:
        """Let the lake hold these files too, and those that are `gone` (names) no longer, if it
        still is what `before` says; else False."""
        return self._list.commit(before, added, gone)

    def stage(self, rows: DataFrame) -> list[LakeFile]:
        """Write rows, which have a `date`, into files at their places, where readers do not see
        them yet.

        Returns what `commit` takes; nothing for no rows.
        """
        folder = self.staging()
        staged = self.files.path(folder)
        writer = rows.write.option("compression", self.codec())
        writer.partitionBy("date", "queue").parquet(staged)
        try:
            return self.adopt(folder, self._written(folder, self.reader(_KEYS).parquet(staged)))
        finally:
            self.files.delete(folder)

    def staging(self) -> str:
        """A new name for a folder in which files are written that do not count yet."""
        return f"{STAGING}/{uuid.uuid4().hex}"

    def codec(self) -> str:
        """How files are compressed, as Spark calls it: zstd, unless the session says otherwise.

        Ids are most of a row, and digits: half the size that snappy leaves, or less.
        """
        return str(self.spark.conf.get("spark.sql.parquet.compression.codec", "zstd")).lower()

    def adopt(self, folder: str, files: Iterable[LakeFile]) -> list[LakeFile]:
        """Move files, which are named as if they were in the lake, from a folder to their places,
        where readers do not see them yet. Returns the argument of `commit`."""
        made = []
        for file in files:
            self.files.move(f"{folder}/{file.name}", file.name)
            made.append(file)
        return made

    def _written(self, folder: str, rows: DataFrame) -> list[LakeFile]:
        """The files that Spark has written into a folder."""
        staged = [file for file in self.files.find(folder) if _FOLDERS.fullmatch(file.name)]
        if not staged:
            return []
        facts = {
            (row["date"], row["queue"], row["file"]): (row["rows"], Entry(row["ms"], row["number"]))
            for row in rows.sparkSession.sql(
                """SELECT date, queue, file, count(*) AS rows, max(id).ms AS ms,
                  max(id).number AS number
                FROM {rows} GROUP BY 1, 2, 3""",
                rows=rows.select("date", "queue", "_metadata.file_name", entry_id("entry")).toDF(
                    "date", "queue", "file", "id"
                ),
            ).collect()
        }
        made = []
        for file in staged:
            day, queue = _placed(file)
            count, last = facts[day, queue, file.name.rpartition("/")[2]]
            made.append(LakeFile(file.name, file.size, file.modified_ms, day, queue, count, last))
        return made

    def check_schema(self) -> st.StructType:
        """The columns that the lake has, together with those that we know.

        Raises LakeError if a column is of another type, or the lake of a later format.
        """
        text = self.files.read_text(_SCHEMA_FILE)
        if text is None:
            return SCHEMA
        try:
            document = json.loads(text)
            theirs = st.StructType.fromJson(document["schema"])
            version = int(document["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise LakeError(f"{self.files.path(_SCHEMA_FILE)} is broken: {error}") from None
        if version > _FORMAT:
            raise LakeError(
                f"the lake at {self.path} is of format {version}, this rqueue reads {_FORMAT}: "
                "use a newer one"
            )
        return _together(theirs, SCHEMA, self.path)

    def keep_schema(self) -> None:
        """Note the columns that we write, beside those that are there. Raises LakeError."""
        schema = self.check_schema()
        document = {"format": _FORMAT, "schema": schema.jsonValue()}
        text = json.dumps(document, indent=1)
        if text != self.files.read_text(_SCHEMA_FILE):
            self.files.replace(_SCHEMA_FILE, text)

    def clean(self, keep_s: float = KEEP_S, *, now_ms: int | None = None) -> int:
        """Delete files that were replaced more than `keep_s` seconds ago, so that who had begun to
        read could end, and after a day what killed writers left. Returns how many."""
        now_ms = round(time.time() * 1000) if now_ms is None else now_ms
        expired = self._list.expired(now_ms - round(keep_s * 1000))
        deleted = 0
        for file in self.files.find(""):
            if _FOLDERS.fullmatch(file.name):
                if file.name in expired.named:
                    continue
            elif not file.name.startswith((f"{STAGING}/", DRAFTS)):
                continue
            if file.name in expired.files or file.modified_ms < now_ms - _ABANDONED_S * 1000:
                self.files.delete(file.name)
                deleted += 1
        for name in expired.lists:
            self.files.delete(name)
        return deleted


def read(spark: SparkSession, path: str, queues: Sequence[str] = ()) -> DataFrame:
    """The rows of a lake, in the columns of `HISTORY` and `date`: the one way to read it.

    queues: only these. Put a filter on `date` for part of it: the other days are not opened. Reads
    what the lake holds now, unaffected by the archiver and the compaction meanwhile. Raises
    ConfigError if there is no lake, and LakeError.
    """
    frame, _ = Lake(spark, path).read()
    return frame.where(frame["queue"].isin(*queues)) if queues else frame


def entry_id(entry: str | Column) -> Column:
    """Ids of entries, which are text, as what sorts by age: {ms, number}."""
    column = F.col(entry) if isinstance(entry, str) else entry
    ms, number = (F.split_part(column, F.lit("-"), F.lit(part)) for part in (1, 2))
    return F.struct(ms.cast("bigint").alias("ms"), number.cast("bigint").alias("number"))


def day_column(entry: str) -> Column:
    """The UTC day of an entry: the lake's `date`."""
    days = F.floor(entry_id(entry)["ms"] / F.lit(86_400_000)).cast("int")
    return F.date_add(F.lit("1970-01-01").cast("date"), days)


def day_of(ms: int) -> date:
    """The UTC day of a time in ms since the epoch."""
    return datetime.fromtimestamp(ms / 1000, UTC).date()


def _placed(file: FileInfo) -> tuple[date, str]:
    """The date and queue that a file's folders stand for."""
    match = _FOLDERS.fullmatch(file.name)
    assert match
    return date.fromisoformat(match[1]), unquote(match[2])


def _together(theirs: st.StructType, ours: st.StructType, path: str) -> st.StructType:
    known = {field.name: field for field in theirs.fields}
    for field in ours.fields:
        other = known.get(field.name)
        if other is not None and other.dataType != field.dataType:
            raise LakeError(
                f"column '{field.name}' of the lake at {path} is {other.dataType.simpleString()}, "
                f"this rqueue has {field.dataType.simpleString()}: a lake's columns never change "
                "their type; archive into another folder"
            )
    added = [field for field in ours.fields if field.name not in known]
    return st.StructType([*theirs.fields, *added])
