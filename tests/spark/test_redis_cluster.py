"""History out of a Redis Cluster: each queue is on one node, the list of them on all."""

from pathlib import Path
from typing import Any, cast

import pytest
import redis
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from rqueue.protocol.keys import QueueKeys
from rqueue.spark.errors import HistoryLost
from rqueue.spark.history.stream import HistoryStreamReader
from rqueue.spark.options import HistoryStream, read_options
from rqueue.spark.schemas import HISTORY
from tests.support.history import columns_of, trim
from tests.support.redis_cluster import SmallCluster

QUEUES = [f"queue-{number}" for number in range(9)]


def fill(cluster: SmallCluster, namespace: str, entries: int = 4) -> set[str]:
    """Write to all queues; returns the nodes that hold some of them."""
    from rqueue.model.history_batch import pack

    nodes = set()
    with cluster.client() as client:
        for number, name in enumerate(QUEUES):
            keys = QueueKeys(name, namespace)
            for entry in range(entries):
                first = 1000 * number + 10 * entry
                packed = pack(columns_of(range(first, first + 10)))
                client.xadd(keys.history, {"n": 10, "b": packed})
            client.hincrby(keys.meta, "history_rows", 10 * entries)
            client.hset(keys.meta, "v", "1")
            nodes.add(client.get_node_from_key(keys.meta).name)
    return nodes


@pytest.fixture
def namespace(queue_name: str) -> str:
    return queue_name.replace("[", "-").replace("]", "")


@pytest.mark.parametrize("named", ["by its URL", "by an option"])
def test_all_queues_of_all_nodes(
    spark: SparkSession, redis_cluster: SmallCluster, namespace: str, named: str
) -> None:
    assert len(fill(redis_cluster, namespace)) == 3
    where = {"url": redis_cluster.cluster_url}
    if named == "by an option":
        where = {"url": redis_cluster.url, "cluster": "true"}
    reader = spark.read.format("rqueue-history").options(
        **where, namespace=namespace, partitionRows=50
    )
    frame = reader.load()
    assert frame.groupBy("queue").count().filter("count = 40").count() == len(QUEUES)
    assert frame.select("id").distinct().count() == 40 * len(QUEUES)
    assert reader.load(queues="queue-3,queue-4").count() == 80


def test_a_stream_of_all_queues(
    spark: SparkSession, redis_cluster: SmallCluster, namespace: str, tmp_path: Path
) -> None:
    for more in (1, 2):
        fill(redis_cluster, namespace)
        (
            spark.readStream.format("rqueue-history")
            .options(url=redis_cluster.url, cluster="true", namespace=namespace)
            .option("maxRowsPerBatch", "200")
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(tmp_path / "out"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
        found = spark.read.parquet(str(tmp_path / "out"))
        assert found.select("queue", "entry", "row").distinct().count() == 360 * more
        assert found.count() == 360 * more


def test_losses_are_found_there_too(redis_cluster: SmallCluster, namespace: str) -> None:
    given = {"url": redis_cluster.url, "cluster": "true", "namespace": namespace}
    reader = HistoryStreamReader(read_options(HistoryStream, given), HISTORY)
    fill(redis_cluster, namespace)
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    fill(redis_cluster, namespace)
    with redis_cluster.client() as client:
        keys = QueueKeys(QUEUES[2], namespace)
        trim(cast("redis.Redis", client), keys, 5)
    with pytest.raises(HistoryLost, match="queue-2"):
        reader.latestOffset(start, ReadAllAvailable())
    reader.stop()


@pytest.mark.parametrize(
    ("cluster", "said"),
    [("false", "set cluster=true"), ("true", "this server is not in cluster mode")],
)
def test_a_wrong_guess_is_reported(
    spark: SparkSession, redis_cluster: SmallCluster, private_server: Any, cluster: str, said: str
) -> None:
    url = redis_cluster.url if cluster == "false" else private_server.tcp_url
    queues = ",".join(QUEUES)
    reader = spark.read.format("rqueue-history").options(url=url, cluster=cluster, queues=queues)
    with pytest.raises(CapturedException) as error:
        reader.load().collect()
    assert said in str(error.value)
