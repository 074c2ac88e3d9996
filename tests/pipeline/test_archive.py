"""History goes into the lake once, whatever comes twice."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.pipeline.archive import batches
from rqueue.pipeline.archive import compact as compaction
from rqueue.pipeline.archive.archiver import Archived, Batch, archive
from rqueue.pipeline.errors import LakeBusy
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.files import Files
from rqueue.pipeline.lake.lake import CHECKPOINT, Lake
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from tests.support.history import plain_rows, trim, write


@pytest.fixture
def namespace(client: redis.Redis, queue_name: str) -> Iterator[str]:
    """One of this test alone, so that `*` means its queues."""
    name = queue_name.replace("[", "-").replace("]", "")
    yield name
    if keys := list(client.scan_iter(match=f"{name}:*", count=1000)):
        client.unlink(*keys)


@pytest.fixture
def run(
    spark: SparkSession, server: EmbeddedRedis, namespace: str, tmp_path: Path
) -> Callable[..., Archived]:
    """Archives once what there is into the lake at tmp_path/lake."""

    def call(**more: Any) -> Archived:
        source = {"url": server.url, "namespace": namespace, **more.pop("options", {})}
        return archive(spark, str(tmp_path / "lake"), source, **{"once": True, **more})

    return call


def keys_in_lake(spark: SparkSession, path: Path) -> Counter[tuple[str, str, int]]:
    rows = lakes.read(spark, str(path)).select("queue", "entry", "row").collect()
    return Counter(tuple(row) for row in rows)


def keys_in_history(
    client: redis.Redis, namespace: str, *queues: str
) -> Counter[tuple[str, str, int]]:
    found: Counter[tuple[str, str, int]] = Counter()
    for queue in queues:
        seen: Counter[str] = Counter()
        for row in plain_rows(client, QueueKeys(queue, namespace)):
            found[queue, row["entry"], seen[row["entry"]]] += 1
            seen[row["entry"]] += 1
    return found


def test_a_queue_that_is_spread_is_archived_by_its_name(
    spark: SparkSession,
    server: EmbeddedRedis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
) -> None:
    """All its shards are, and those that open meanwhile."""
    with ShardedQueue("orders", server.url, shards=2, namespace=namespace) as queue:
        queue.table()
        for number in range(6):
            queue.send("t", options=Options(id=f"j{number}"))
        queue.cancel_all()
        run(options={"queues": "orders"})
        queue.open(order=False)
        for number in range(6, 18):
            queue.send("t", options=Options(id=f"j{number}"))
        queue.cancel_all()
        run(options={"queues": "orders"})
    rows = lakes.read(spark, str(tmp_path / "lake")).select("queue", "id").collect()
    assert sorted(row.id for row in rows) == sorted(f"j{number}" for number in range(18))
    assert {row.queue for row in rows} == {f"orders~{number}" for number in range(3)}


def test_all_rows_once_with_all_their_columns(
    spark: SparkSession,
    server: EmbeddedRedis,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
) -> None:
    odd = "a b/c=%7D*[x]{y}é"  # what a folder's name may not hold
    number = "7"  # a name that Spark would take for a number
    write(client, QueueKeys("mail", namespace), entries=3, rows=40)
    write(client, QueueKeys(odd, namespace), entries=2, rows=7)
    write(client, QueueKeys(number, namespace), entries=1, rows=5)
    batches: list[Batch] = []
    done = run(on_batch=batches.append)
    assert (done.rows, batches[-1].total) == (139, 139)
    assert (batches[-1].lag.rows, batches[-1].lag.seconds) == (0, 0.0)

    path = tmp_path / "lake"
    expected = keys_in_history(client, namespace, "mail", odd, number)
    assert keys_in_lake(spark, path) == expected
    source = spark.read.format("rqueue-history").options(url=server.url, namespace=namespace)
    live = sorted(map(str, source.load().collect()))
    lake = lakes.read(spark, str(path))
    assert sorted(map(str, lake.drop("date").collect())) == live
    for row in lake.select("entry", "date").distinct().collect():
        ms = int(row["entry"].split("-")[0])
        assert row["date"] == datetime.fromtimestamp(ms / 1000, UTC).date()
    some = lakes.read(spark, str(path), [odd, number])
    assert some.count() == 19
    # who knows nothing of rqueue reads the same rows
    assert spark.read.parquet(str(path)).count() == 139


def test_what_is_there_already_is_not_added_again(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
) -> None:
    keys = QueueKeys("q", namespace)
    write(client, keys, entries=4, rows=10)
    assert run().rows == 40
    again = run()
    assert (again.rows, again.batches) == (0, 0)
    write(client, keys, entries=1, rows=3)
    write(client, QueueKeys("later", namespace), entries=1, rows=2)
    assert run().rows == 5
    path = tmp_path / "lake"
    assert keys_in_lake(spark, path) == keys_in_history(client, namespace, "q", "later")

    # A kill between the lake's list and the checkpoint: the batch comes again.
    for name in ("1", ".1.crc"):
        (path / CHECKPOINT / "commits" / name).unlink()
    assert run().rows == 0
    # The checkpoint is gone altogether: all comes again, and what is new.
    shutil.rmtree(path / CHECKPOINT)
    write(client, keys, entries=1, rows=4)
    assert run().rows == 4
    assert keys_in_lake(spark, path) == keys_in_history(client, namespace, "q", "later")


class Killed(Exception):
    """As a SIGKILL at this place: nothing runs after it."""


def dies(call: Callable[..., Any], calls: int, after: bool = False) -> Callable[..., Any]:
    """A function that is killed in its call of that number (from 0), or right after it."""
    left = [calls]

    def dying(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and not after:
            raise Killed
        answer = call(*args, **more)
        if left[0] < 0:
            raise Killed
        return answer

    return dying


def test_interrupted_at_any_step(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a kill leaves behind counts for nothing, or for all of its batch; and so does what a row
    of kills leaves."""
    path = tmp_path / "lake"
    write(client, QueueKeys("q", namespace), entries=3, rows=10)
    run()
    write(client, QueueKeys("q", namespace), entries=2, rows=5)
    write(client, QueueKeys("p", namespace), entries=2, rows=5)
    steps = {
        "written aside": (Lake, "adopt", dies(Lake.adopt, 0), 30),
        "one file of two in its place": (Files, "move", dies(Files.move, 1), 30),
        "all files in their places": (Lake, "commit", dies(Lake.commit, 0), 30),
        "part of the lake": (Lake, "commit", dies(Lake.commit, 0, after=True), 50),
    }
    for step, (owner, name, dying, there) in steps.items():
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, dying)
            broken.setattr(Files, "delete", lambda *_: None)  # a kill tidies nothing
            with pytest.raises(Killed):
                run()
        assert sum(keys_in_lake(spark, path).values()) == there, step
        assert spark.read.parquet(str(path)).count() == there, step
    assert run().rows == 0
    assert keys_in_lake(spark, path) == keys_in_history(client, namespace, "q", "p")


def test_batches_are_limited(
    client: redis.Redis, namespace: str, run: Callable[..., Archived]
) -> None:
    write(client, QueueKeys("q", namespace), entries=6, rows=10)
    batches: list[Batch] = []
    run(options={"maxRowsPerBatch": "20"}, on_batch=batches.append)
    assert [(batch.rows, batch.total, batch.lag.rows) for batch in batches] == [
        (20, 20, 40), (20, 40, 20), (20, 60, 0),
    ]  # fmt: skip
    assert batches[0].lag.seconds > 0


def test_it_runs_until_it_is_stopped(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
) -> None:
    keys = QueueKeys("q", namespace)
    write(client, keys, entries=1, rows=10)
    stop = threading.Event()
    seen: list[int] = []

    def on_batch(batch: Batch) -> None:
        seen.append(batch.total)
        if batch.total == 10:
            write(client, keys, entries=1, rows=5)
        else:
            stop.set()

    done = run(once=False, interval_s=0.1, stop=stop, on_batch=on_batch)
    assert (done.rows, seen) == (15, [10, 15])
    assert not spark.streams.active
    assert keys_in_lake(spark, tmp_path / "lake") == keys_in_history(client, namespace, "q")


def test_a_long_run_deletes_what_nobody_needs(
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not only when it ends."""
    keys = QueueKeys("q", namespace)
    write(client, keys, entries=3, rows=10)
    order: list[str] = []
    real = Lake.clean
    monkeypatch.setattr(batches, "CLEAN_S", 0.0)
    monkeypatch.setattr(Lake, "clean", lambda lake: order.append("clean") or real(lake))
    run(options={"maxRowsPerBatch": "10"}, on_batch=lambda batch: order.append("batch"))
    assert order == ["batch", "clean"] * 3 + ["clean"]


def test_two_archivers_write_nothing_twice(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is as far as another, and slower, finds its rows there."""
    write(client, QueueKeys("q", namespace), entries=2, rows=10)
    path = tmp_path / "lake"
    real = Lake.commit

    def overtaken(lake: Lake, before: Any, files: Any) -> bool:
        monkeypatch.setattr(Lake, "commit", real)
        files = list(files)
        assert real(lake, before, files)  # the other one, with the very same rows
        return real(lake, before, files)

    monkeypatch.setattr(Lake, "commit", overtaken)
    with pytest.raises(LakeBusy, match="another archiver"):
        run()
    assert keys_in_lake(spark, path) == keys_in_history(client, namespace, "q")
    assert run().rows == 0


def test_a_compaction_in_between_is_no_conflict(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = QueueKeys("q", namespace)
    write(client, keys, entries=2, rows=10)
    assert run(options={"maxRowsPerBatch": "10"}).batches == 2
    write(client, keys, entries=1, rows=10)
    real = Lake.commit

    def overtaken(lake: Lake, before: Any, files: Any) -> bool:
        monkeypatch.setattr(Lake, "commit", real)
        assert compaction.merge(lake, [before.files])
        return real(lake, before, files)

    monkeypatch.setattr(Lake, "commit", overtaken)
    assert run().rows == 10
    lake = Lake(spark, str(tmp_path / "lake"))
    assert [file.rows for file in lake.snapshot().files] == [20, 10]
    assert keys_in_lake(spark, tmp_path / "lake") == keys_in_history(client, namespace, "q")


def test_rows_that_were_trimmed_too_early(
    spark: SparkSession,
    client: redis.Redis,
    namespace: str,
    run: Callable[..., Archived],
    tmp_path: Path,
) -> None:
    keys = QueueKeys("q", namespace)
    write(client, keys, entries=1, rows=10)
    run()
    write(client, keys, entries=2, rows=10)
    trim(client, keys, 2)
    with pytest.raises(Exception, match="history of queue 'q' is lost"):
        run()
    assert run(options={"failOnDataLoss": "false"}).rows == 10
    assert sum(keys_in_lake(spark, tmp_path / "lake").values()) == 20


def test_wrong_options_are_named(run: Callable[..., Archived]) -> None:
    with pytest.raises(ConfigError, match="maxRows: "):
        run(options={"maxRows": "1"})
