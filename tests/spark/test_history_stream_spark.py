"""Whole streams of history on Spark."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.history.stream import backlog
from tests.spark.reading import jobs
from tests.support.history import trim, write

# -- whole streams on Spark ------------------------------------------------------------------------


class Stream:
    """A query from history into Parquet files, and what they hold."""

    def __init__(self, spark: SparkSession, folder: Path, **options: Any) -> None:
        self.spark = spark
        self.folder = folder
        self.options = options

    def frame(self, **more: Any) -> DataFrame:
        options = {**self.options, **more}
        return self.spark.readStream.format("rqueue-history").options(**options).load()

    def run(self, **more: Any) -> list[int]:
        """Read what there is; returns the rows of each batch."""
        query = (
            self.frame(**more)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .option("path", str(self.folder / "out"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]

    def ids(self) -> list[str]:
        rows = self.spark.read.parquet(str(self.folder / "out")).select("id").collect()
        return sorted((row[0] for row in rows), key=lambda id: int(id.removeprefix("job-")))


@pytest.fixture
def stream(spark: SparkSession, server: EmbeddedRedis, tmp_path: Path, namespace: str) -> Stream:
    return Stream(spark, tmp_path, url=server.url, namespace=namespace, queues="q")


@pytest.mark.each_spark(cluster="long")
def test_a_stream_goes_on_where_it_stopped(
    stream: Stream, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 10, 10)
    assert stream.run(maxRowsPerBatch=60, partitionRows=25) == [60, 40]
    assert stream.ids() == jobs(0, 100)
    assert stream.run() == []
    trim(client, keys, 10)
    write(client, keys, 5, 10, first=100)
    assert stream.run() == [50]
    assert stream.ids() == jobs(0, 150)


def test_progress_says_how_far_behind_it_is(
    stream: Stream, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 10, 10)
    query = (
        stream.frame(maxRowsPerBatch=30)
        .writeStream.format("noop")
        .option("checkpointLocation", str(stream.folder / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        progress = [one for one in query.recentProgress if one["numInputRows"]]
        last = json.loads(progress[-1]["sources"][0]["endOffset"])
        first = json.loads(progress[0]["sources"][0]["endOffset"])
        latest = json.loads(progress[0]["sources"][0]["latestOffset"])
    finally:
        query.stop()
    assert [one["numInputRows"] for one in progress] == [30, 30, 30, 10]
    assert backlog(first, last) == 70
    assert backlog(first, latest) == 70


def test_a_repeated_batch_has_the_very_same_rows_in_the_same_slices(
    stream: Stream, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 30, 10)
    seen: list[tuple[int, list[Any]]] = []

    def run(fail: bool) -> None:
        def work(batch: DataFrame, number: int) -> None:
            rows = batch.select(f.spark_partition_id(), "entry", "row", "id").collect()
            seen.append((number, rows))
            if fail:
                raise RuntimeError("as if the driver died here")

        query = (
            stream.frame(maxRowsPerBatch=200, partitionRows=40)
            .writeStream.foreachBatch(work)
            .option("checkpointLocation", str(stream.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with pytest.raises(StreamingQueryException, match="as if the driver died"):
        run(fail=True)
    write(client, keys, 10, 10, first=300)
    run(fail=False)
    assert [number for number, _ in seen[:3]] == [0, 0, 1]
    assert seen[0][1] == seen[1][1]
    assert len({row[0] for row in seen[0][1]}) >= 5
    assert [row["id"] for _, rows in seen[1:] for row in rows] == jobs(0, 400)


def test_a_trimmed_stream_fails_with_what_to_do(
    stream: Stream, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 2, 10)
    stream.run()
    write(client, keys, 5, 10, first=20)
    trim(client, keys, 4)
    with pytest.raises(StreamingQueryException, match="history of queue 'q' is lost") as error:
        stream.run()
    assert "failOnDataLoss=false" in str(error.value)
    assert stream.run(failOnDataLoss=False) == [30]
    assert stream.ids() == [*jobs(0, 20), *jobs(40, 70)]


def test_new_queues_come_in_while_it_runs(
    stream: Stream, client: redis.Redis, keys: QueueKeys, namespace: str
) -> None:
    write(client, keys, 1, 10)
    query = (
        stream.frame(queues="*")
        .writeStream.format("memory")
        .queryName("seen")
        .option("checkpointLocation", str(stream.folder / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        other = QueueKeys("other", namespace)
        write(client, other, 1, 10, first=10)
        done = threading.Event()
        for _ in range(120):  # Spark tells nobody of a batch
            if stream.spark.table("seen").count() >= 20 or done.wait(0.25):
                break
        assert stream.spark.table("seen").groupBy("queue").count().count() == 2
    finally:
        query.stop()


def test_a_wrong_option_of_a_stream_is_named(stream: Stream) -> None:
    with pytest.raises(Exception, match="maxRowsPerBatch: 0 is below 1"):
        stream.run(maxRowsPerBatch=0)
