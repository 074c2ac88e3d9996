"""The lake: what counts is its list; columns are only added; small files become few."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from rqueue.errors import ConfigError
from rqueue.pipeline.archive import compact as compaction
from rqueue.pipeline.archive.compact import compact, merge
from rqueue.pipeline.archive.staging import folder_of
from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.file_list import Entry, LakeFile
from rqueue.pipeline.lake.files import Files
from rqueue.pipeline.lake.lake import SCHEMA, Lake, day_column, day_of
from rqueue.spark.errors import spark_is_gone
from rqueue.spark.schemas import HISTORY_COLUMNS, arrow_schema
from tests.pipeline.history_rows import DAY, FIRST, T0, frame, table

pytestmark = pytest.mark.timeout(600)

on_both = pytest.mark.parametrize("lake", ["local", "hadoop"], indirect=True)


@pytest.fixture
def lake(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Lake:
    """An empty lake, written as a folder of this machine; `on_both`: and as any that Hadoop knows,
    for what goes through `Files` in ways that no other test goes."""
    if getattr(request, "param", "local") == "hadoop":
        monkeypatch.setattr(Files, "_is_local", lambda _: False)
    lake = Lake(spark, str(tmp_path / "lake"))
    lake.keep_schema()
    return lake


def add(lake: Lake, *rows: dict[str, Any], frame_of: DataFrame | None = None) -> list[LakeFile]:
    """Add rows as the archiver does: one file for each date and queue, which Spark writes only
    where it must. `frame_of`: these, which are not of our schema."""
    given = [{"task": "t", "outcome": "ack"} | row for row in rows]
    if frame_of is None and lake.files.local is not None:
        made = written(lake, lake.files.local, given)
    else:
        shown = frame(lake.spark, given) if frame_of is None else frame_of
        made = lake.stage(shown.coalesce(1).withColumn("date", day_column("entry")))
    assert lake.commit(lake.snapshot(), made)
    return made


def written(lake: Lake, root: Path, rows: list[dict[str, Any]]) -> list[LakeFile]:
    """Rows in files at their places, written as the archiver's tasks write theirs."""
    parts: dict[tuple[date, str], list[dict[str, Any]]] = defaultdict(list)
    for row in table(rows).to_pylist():
        parts[day_of(Entry.of(row["entry"]).ms), row["queue"]].append(row)
    folder, made = lake.staging(), []
    for (day, queue), some in sorted(parts.items()):
        name = f"{folder_of(day, queue)}/part-{uuid.uuid4()}.parquet"
        path = root / folder / name
        path.parent.mkdir(parents=True)
        columns = pa.Table.from_pylist(some, arrow_schema(HISTORY_COLUMNS)).drop_columns("queue")
        pq.write_table(columns, path, compression=lake.codec(), store_schema=False)
        size, modified_ms = path.stat().st_size, path.stat().st_mtime_ns // 1_000_000
        last = max(Entry.of(row["entry"]) for row in some)
        made.append(LakeFile(name, size, modified_ms, day, queue, len(some), last))
    made = lake.adopt(folder, made)
    lake.files.delete(folder)
    return made


def ids(lake: Lake) -> list[str]:
    return sorted(row["id"] for row in lakes.read(lake.spark, lake.path).collect())


# -- lists -----------------------------------------------------------------------------------------


@on_both
def test_what_a_list_tells(lake: Lake) -> None:
    add(lake, {"id": "1", "at": 5}, {"id": "2", "at": DAY}, {"id": "3", "at": 7, "queue": "p"})
    snapshot = lake.snapshot()
    assert [(file.date, file.queue, file.rows) for file in snapshot.files] == [
        (FIRST, "a", 1), (FIRST, "p", 1), (FIRST + timedelta(1), "a", 1),
    ]  # fmt: skip
    # `frame` gives each row an entry of its own: its time, and its number in the table
    assert snapshot.marks() == {"a": Entry(T0 + DAY, 1), "p": Entry(T0 + 7, 2)}
    assert snapshot.rows == 3
    for file in snapshot.files:
        there = Path(lake.path.removeprefix("file:")) / file.name
        assert there.stat().st_size == file.size


def test_entries_are_ordered_by_number() -> None:
    assert Entry.of("9-10") > Entry.of("9-9") > Entry.of("8-11")
    assert str(Entry.of("12-3")) == "12-3"


@on_both
def test_who_finds_the_number_taken_changes_nothing(lake: Lake) -> None:
    [made] = add(lake, {"id": "1", "at": 1})
    before = lake.snapshot()
    assert lake.commit(before, [replace(made, rows=7)], {made.name})
    assert not lake.commit(before, [made])
    assert not lake.commit(before, (), {made.name})
    assert lake.snapshot().rows == 7


def test_files_that_no_list_names_do_not_count(lake: Lake, spark: SparkSession) -> None:
    [made] = add(lake, {"id": "1", "at": 1})
    again = frame(spark, [{"id": "2", "task": "t", "outcome": "ack", "at": 2}])
    lake.stage(again.withColumn("date", day_column("entry")))  # and never committed
    assert ids(lake) == ["1"]
    assert spark.read.parquet(lake.path).count() == 1
    folder = Path(lake.path.removeprefix("file:")) / made.folder
    assert len(list(folder.glob("*.parquet"))) == 2


def test_a_reader_keeps_what_it_began_with(lake: Lake) -> None:
    add(lake, {"id": "1", "at": 1})
    add(lake, {"id": "2", "at": 2})
    begun = lakes.read(lake.spark, lake.path)
    add(lake, {"id": "3", "at": 3})
    assert compact(lake.spark, lake.path).merged
    assert sorted(row["id"] for row in begun.collect()) == ["1", "2"]
    assert ids(lake) == ["1", "2", "3"]


def test_spark_itself_reads_what_is_listed(lake: Lake, spark: SparkSession) -> None:
    """Small lists behind a whole one, a whole one behind them, and what a killed writer left."""

    def counts() -> tuple[int, int]:
        return spark.read.parquet(lake.path).count(), lake.snapshot().rows

    [made] = add(lake, {"id": "1", "at": 1})
    root = Path(lake.path.removeprefix("file:"))
    expected = 1
    for number in range(25):
        other = replace(made, name=f"{made.folder}/part-{number}.parquet")
        os.link(root / made.name, root / other.name)
        assert lake.commit(lake.snapshot(), [other])
        expected += 1
        if number in (0, 9, 10, 11, 24):
            assert counts() == (expected, expected)
    assert sorted(path.name for path in (root / "_spark_metadata").glob("*.compact")) == [
        "1008.compact", "2017.compact", "3026.compact",
    ]  # fmt: skip
    (root / "_spark_metadata" / str(lake.snapshot().version + 1)).write_text("v1")
    assert counts() == (26, 26)
    assert merge(lake, [lake.snapshot().files])
    assert counts() == (26, 26)
    lake.clean(0, now_ms=round(datetime.now(UTC).timestamp() * 1000) + 60_000)
    assert counts() == (26, 26)
    assert len(list((root / "_spark_metadata").iterdir())) == 2


def test_there_is_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none at file:.*/empty: .*, with the first rows of"):
        lakes.read(spark, str(tmp_path / "empty"))
    with pytest.raises(LakeError, match="needs a path"):
        lakes.read(spark, " ")
    with pytest.raises(LakeError, match="nosuch"):
        lakes.read(spark, "nosuch://host/lake")


def test_a_session_of_spark_connect_is_told_so() -> None:
    connect: Any = object()  # no classic session: it has no Java
    with pytest.raises(LakeError, match=r"Spark Connect .* spark\.read\.parquet\('/lake'\)"):
        lakes.read(connect, "/lake")


def test_a_list_that_is_none_of_ours(lake: Lake) -> None:
    lists = Path(lake.path.removeprefix("file:")) / "_spark_metadata"
    lists.mkdir()
    (lists / "1008.compact").write_text('v1\n{"path":"file:/x","size":1}')
    with pytest.raises(LakeError, match=r"1008\.compact is no list of a lake of rqueue: 'name'"):
        lakes.read(lake.spark, lake.path)


@on_both
def test_a_lake_that_was_moved(lake: Lake, spark: SparkSession) -> None:
    odd = "a b{c}*[d]?%"
    add(lake, {"id": "1", "at": 1, "queue": odd})
    old = Path(lake.path.removeprefix("file:"))
    new = old.with_name("moved [to] {here} *")
    os.rename(old, new)
    moved = Lake(spark, str(new))
    assert ids(moved) == ["1"]
    add(moved, {"id": "2", "at": 2, "queue": odd})  # the next list has the new place in it
    assert not moved.snapshot().moved
    assert ids(moved) == ["1", "2"]


def test_a_java_that_is_gone_is_said_of_no_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    monkeypatch.setattr(lake.files, "_at", Mock(side_effect=refused))
    with pytest.raises(ConnectionRefusedError) as found:
        lake.files.delete("_rqueue/staging")
    assert spark_is_gone(found.value)


# -- columns ---------------------------------------------------------------------------------------


def test_columns_that_older_files_lack_are_null(lake: Lake, spark: SparkSession) -> None:
    old = frame(spark, [{"id": "old", "task": "t", "outcome": "ack", "at": 1}])
    add(lake, frame_of=old.drop("labels", "body", "cause"))
    add(lake, {"id": "new", "at": 2, "cause": "{}"})
    rows = {row["id"]: row for row in lakes.read(spark, lake.path).collect()}
    assert (rows["old"]["cause"], rows["old"]["labels"]) == (None, None)
    assert rows["new"]["cause"] == "{}"
    assert rows["old"]["task"] == "t"


def _of_another_version(lake: Lake, field: st.StructField, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lake have been made by an rqueue that has one more column."""
    with monkeypatch.context() as other:
        fields = [one for one in SCHEMA.fields if one.name != field.name]
        other.setattr(lakes, "SCHEMA", st.StructType([*fields, field]))
        lake.files.delete("_rqueue/schema.json")
        lake.keep_schema()


@on_both
def test_a_lake_of_a_newer_rqueue(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read with what we know; added to without the new column; compacted with it."""
    _of_another_version(lake, st.StructField("shade", st.StringType()), monkeypatch)
    table = frame(spark, [{"id": "new", "task": "t", "outcome": "ack", "at": 1}])
    add(lake, frame_of=table.withColumn("shade", f.lit("blue")))
    lake.keep_schema()  # ours
    add(lake, {"id": "ours", "at": 2})
    assert "shade" not in lakes.read(spark, lake.path).columns
    assert ids(lake) == ["new", "ours"]
    assert compact(spark, lake.path).merged
    assert ids(lake) == ["new", "ours"]
    kept = {row["id"]: row["shade"] for row in spark.read.parquet(lake.path).collect()}
    assert kept == {"new": "blue", "ours": None}


def test_a_column_of_another_type_is_refused(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(lake, {"id": "1", "at": 1})
    _of_another_version(lake, st.StructField("level", st.StringType()), monkeypatch)
    said = "column 'level' of the lake at .* is string, this rqueue has int: .* never change"
    with pytest.raises(LakeError, match=said):
        lakes.read(spark, lake.path)
    with pytest.raises(LakeError, match=said):
        lake.keep_schema()


@on_both
def test_a_later_format_is_refused(lake: Lake) -> None:
    document = json.loads(lake.files.read_text("_rqueue/schema.json") or "")
    lake.files.replace("_rqueue/schema.json", json.dumps(document | {"format": 2}))
    with pytest.raises(LakeError, match="is of format 2, this rqueue reads 1: use a newer one"):
        lake.check_schema()
    lake.files.replace("_rqueue/schema.json", "{")
    with pytest.raises(LakeError, match=r"schema\.json is broken"):
        lake.check_schema()


# -- compaction ------------------------------------------------------------------------------------


def test_small_files_become_one_in_order(lake: Lake, spark: SparkSession) -> None:
    add(lake, {"id": "b", "at": 10}, {"id": "c", "at": 100})
    add(lake, {"id": "a", "at": 9}, {"id": "other", "at": 1, "queue": "p"})
    add(lake, {"id": "later", "at": 3 * DAY})
    reported: list[Any] = []
    done = compact(spark, lake.path, today=FIRST + timedelta(3), on_merged=reported.append)
    assert [(m.date, m.queue, m.before, m.after, m.rows) for m in done.merged] == [
        (FIRST, "a", 2, 1, 3)
    ]
    assert reported == list(done.merged)
    files = lake.snapshot().files
    assert [(file.queue, file.rows, file.last.ms - T0) for file in files] == [
        ("p", 1, 1), ("a", 1, 3 * DAY), ("a", 3, 100),
    ]  # fmt: skip
    rows = spark.read.parquet(lake.files.path(files[-1].name)).collect()
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert ids(lake) == ["a", "b", "c", "later", "other"]
    assert compact(spark, lake.path, today=FIRST + timedelta(3)).merged == ()


@on_both
def test_two_compactions_at_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one finds its files replaced, and leaves nothing behind."""
    add(lake, {"id": "1", "at": 1})
    add(lake, {"id": "2", "at": 2})
    files = lake.snapshot().files
    assert merge(lake, [files])
    assert merge(lake, [files]) == []
    assert ids(lake) == ["1", "2"]
    assert lake.snapshot().rows == 2
    folder = Path(lake.path.removeprefix("file:")) / files[0].folder
    assert len(list(folder.glob("*.parquet"))) == 3  # two replaced, and the one


def test_a_file_with_other_rows_than_listed_is_not_compacted(lake: Lake) -> None:
    add(lake, {"id": "1", "at": 1})
    add(lake, {"id": "2", "at": 2})
    before = lake.snapshot()
    first, _ = before.files
    assert lake.commit(before, [replace(first, rows=7)], {first.name})
    with pytest.raises(LakeError, match="holds 2 rows, the lake's list says 8: left as it is"):
        merge(lake, [lake.snapshot().files])
    assert ids(lake) == ["1", "2"]


@pytest.mark.parametrize("step", ["adopt", "commit"])
def test_a_compaction_that_is_killed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    add(lake, {"id": "1", "at": 1})
    add(lake, {"id": "2", "at": 2})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Lake, step, killed)
        broken.setattr(Files, "delete", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            merge(lake, [lake.snapshot().files])
    assert ids(lake) == ["1", "2"]
    assert len(compact(lake.spark, lake.path).merged) == 1
    assert ids(lake) == ["1", "2"]


# -- cleaning --------------------------------------------------------------------------------------


@pytest.fixture
def names(lake: Lake) -> Callable[[], set[str]]:
    root = Path(lake.path.removeprefix("file:"))
    return lambda: {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not path.name.endswith(".crc")
    }


@on_both
def test_what_was_replaced_goes_after_an_hour(lake: Lake, names: Callable[[], set[str]]) -> None:
    small = [*add(lake, {"id": "1", "at": 1}), *add(lake, {"id": "2", "at": 2})]
    merge(lake, [lake.snapshot().files])
    now = round(datetime.now(UTC).timestamp() * 1000)
    assert lake.clean(3600, now_ms=now + 3_500_000) == 0
    assert {file.name for file in small} <= names()
    assert lake.clean(3600, now_ms=now + 3_700_000) == 2
    assert not {file.name for file in small} & names()
    assert ids(lake) == ["1", "2"]
    assert lake.spark.read.parquet(lake.path).count() == 2
    # only the newest list is left and the place of the one before; Spark and we go on from there
    assert {name for name in names() if name.startswith("_spark")} == {
        "_spark_metadata/1008.compact", "_spark_metadata/2017.compact",
    }  # fmt: skip
    add(lake, {"id": "3", "at": 3})
    assert lake.spark.read.parquet(lake.path).count() == 3
    assert lake.clean(3600, now_ms=now + 3_700_000) == 0


@on_both
def test_what_a_killed_writer_left_goes_after_a_day(
    lake: Lake, names: Callable[[], set[str]]
) -> None:
    add(lake, {"id": "1", "at": 1})
    left = frame(lake.spark, [{"id": "2", "task": "t", "outcome": "ack", "at": 2}])
    [orphan] = lake.stage(left.withColumn("date", day_column("entry")))
    left.write.parquet(lake.files.path("_rqueue/staging/killed"))
    now = round(datetime.now(UTC).timestamp() * 1000)
    before = names()
    assert lake.clean(0, now_ms=now + 23 * 3_600_000) == 0
    assert names() == before
    assert lake.clean(0, now_ms=now + 25 * 3_600_000) >= 2
    assert orphan.name not in names()
    assert not [name for name in names() if "staging" in name]
    assert ids(lake) == ["1"]


def test_most_files_is_what_the_docs_say() -> None:
    assert (compaction.MOST_FILES, compaction.TARGET_BYTES) == (100, 128 * 1024**2)
