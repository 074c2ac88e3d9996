"""Tasks of the archiver write what they read into Parquet files themselves."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis
from pyspark.sql import SparkSession

from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.history_batch import pack
from rqueue.pipeline.archive import staging
from rqueue.pipeline.archive.archiver import Archived, archive
from rqueue.pipeline.archive.staging import folder_of, write_slice
from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.files import Files
from rqueue.pipeline.lake.lake import CHECKPOINT
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.access import Access
from rqueue.spark.history.entries import Range, Slice
from tests.support.history import columns_of, plain_rows, write

DAY_MS = 86_400_000
ODD = "a b/c=%7D*[x]{y}é'\"#:?^\\"


@pytest.fixture
def access(server: EmbeddedRedis) -> Access:
    return Access(server.url)


@pytest.fixture
def keys(client: redis.Redis, queue_name: str) -> Iterator[QueueKeys]:
    keys = QueueKeys(queue_name)
    yield keys
    client.delete(keys.history, keys.meta)


def at(client: redis.Redis, keys: QueueKeys, entry: str, rows: int, **more: Any) -> None:
    """An entry that was written at that time."""
    numbers = [int(entry.partition("-")[0]) + row for row in range(rows)]
    fields: dict[Any, Any] = {"n": rows, "b": pack({**columns_of(numbers), **more})}
    client.xadd(keys.history, fields, id=entry)
    client.hincrby(keys.meta, "history_rows", rows)


def whole(queue: str) -> Slice:
    return Slice([Range(queue, "0-0", "99999999999999-0", 1, True)])


def test_a_file_for_each_day_and_queue(
    client: redis.Redis, access: Access, keys: QueueKeys, tmp_path: Path
) -> None:
    for entry in (f"{DAY_MS - 1}-0", f"{DAY_MS - 1}-7", f"{DAY_MS}-0"):
        at(client, keys, entry, 5)
    both = Slice([*whole(keys.queue).ranges, *whole("nothing-here").ranges])
    first, second = write_slice(access, both, tmp_path, "zstd")
    assert (first.date, first.rows, first.first, first.last) == (
        date(1970, 1, 1), 10, f"{DAY_MS - 1}-0", f"{DAY_MS - 1}-7",
    )  # fmt: skip
    assert (second.date, second.rows, second.first, second.last) == (
        date(1970, 1, 2), 5, f"{DAY_MS}-0", f"{DAY_MS}-0",
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for file in (first, second):
        path = tmp_path / file.name
        assert path.parent.name.startswith("queue=")
        assert (path.stat().st_size, path.stat().st_mtime_ns // 10**6) == (
            file.size, file.modified_ms,
        )  # fmt: skip
        rows += pq.ParquetFile(path).read().to_pylist()
    expected = plain_rows(client, keys)
    for name in ("entry", "id", "task", "outcome", "attempts", "body_size"):
        assert [row[name] for row in rows] == [row[name] for row in expected]
    assert [row["row"] for row in rows] == [*range(5)] * 3


def test_rows_that_are_large_go_in_groups(
    client: redis.Redis,
    access: Access,
    keys: QueueKeys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "ROWS", 10)
    monkeypatch.setattr(staging, "_GROUP_BYTES", 50_000)
    for number in range(1, 7):
        at(client, keys, f"{number}-0", 10, body="x" * 3000)
    (file,) = write_slice(access, whole(keys.queue), tmp_path, "zstd")
    written = pq.ParquetFile(tmp_path / file.name)
    assert written.metadata.num_row_groups == 3
    assert written.metadata.num_rows == file.rows == 60
    entries = written.read(["entry"]).column("entry").to_pylist()
    assert Counter(entries) == {f"{number}-0": 10 for number in range(1, 7)}


def test_what_has_no_rows_becomes_no_file(
    client: redis.Redis, access: Access, keys: QueueKeys, tmp_path: Path
) -> None:
    fields: dict[Any, Any] = {"n": 0, "b": pack(columns_of([1, 2])), "r": "0,1"}
    client.xadd(keys.history, fields)
    assert list(write_slice(access, whole(keys.queue), tmp_path, "zstd")) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(
    client: redis.Redis, access: Access, keys: QueueKeys, tmp_path: Path
) -> None:
    at(client, keys, "1-0", 1)
    (tmp_path / "date=1970-01-01").write_text("no folder")
    with pytest.raises(LakeError, match=r"date=1970-01-01.*: Not a directory"):
        list(write_slice(access, whole(keys.queue), tmp_path, "zstd"))


@pytest.mark.parametrize("queue", ["mail", "7", "a b", ODD, "".join(map(chr, range(1, 256)))])
def test_folders_are_named_as_spark_names_them(spark: SparkSession, queue: str) -> None:
    jvm: Any = spark._jvm
    utils = jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    named = str(utils.getPartitionPathString("queue", queue))
    assert folder_of(date(2030, 1, 31), queue) == f"date=2030-01-31/{named}"


# -- as the archiver uses it -----------------------------------------------------------------------


@pytest.fixture
def run(
    spark: SparkSession, private_server: EmbeddedRedis, tmp_path: Path
) -> Callable[..., Archived]:
    """Archives once what there is into the lake at tmp_path/lake."""

    def call(**options: str) -> Archived:
        place = {"url": private_server.url, **options}
        return archive(spark, str(tmp_path / "lake"), place, once=True)

    return call


@pytest.mark.parametrize("writes", ["tasks", "spark"])
def test_both_ways_give_the_same_lake(
    spark: SparkSession,
    private_server: EmbeddedRedis,
    run: Callable[..., Archived],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    writes: str,
) -> None:
    """Files that tasks write, and those of Spark, where the workers do not see the lake."""
    if writes == "spark":
        monkeypatch.setattr(Files, "_is_local", lambda _: False)
    assert run().rows == 0  # nothing yet
    with redis.Redis.from_url(private_server.url) as client:
        for entry in (f"{DAY_MS - 1}-0", f"{DAY_MS}-0"):
            at(client, QueueKeys(ODD), entry, 5)
        write(client, QueueKeys("mail"), entries=3, rows=10)
        assert run().rows == 40
        # the checkpoint is gone: of one queue all is known, of the other one all but the last
        shutil.rmtree(tmp_path / "lake" / CHECKPOINT)
        write(client, QueueKeys("mail"), entries=1, rows=4, first=30)
        assert run(partitionRows="1000").rows == 4
        expected = Counter(
            (queue, row["entry"], row["id"])
            for queue in (ODD, "mail")
            for row in plain_rows(client, QueueKeys(queue))
        )
    path = tmp_path / "lake"
    rows = lakes.read(spark, str(path))
    assert Counter(tuple(row) for row in rows.select("queue", "entry", "id").collect()) == expected
    source = spark.read.format("rqueue-history").option("url", private_server.url).load()
    assert sorted(map(str, rows.drop("date").collect())) == sorted(map(str, source.collect()))
    assert spark.read.parquet(str(path)).schema["finished"].dataType.simpleString() == "timestamp"
    made = {file.parent.parent.name for file in path.glob("date=*/queue=*/*.parquet")}
    assert {"date=1970-01-01", "date=1970-01-02"} <= made
    assert list((path / "_rqueue" / "staging").rglob("*.parquet")) == []
    # what the archiver's query was started with is not left behind
    assert spark.conf.get("spark.sql.streaming.checkpointFileManagerClass", None) is None
