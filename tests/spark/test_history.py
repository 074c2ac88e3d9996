import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.schemas import HISTORY
from rqueue.tasks.options import Options
from tests.support.history import T0, plain_rows, settle, trim, write

TIMES = ("enqueued", "due", "acquired", "started", "finished")


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of this test alone."""
    return queue_name.replace("[", "-").replace("]", "")


def read(spark: SparkSession, server: EmbeddedRedis, **options: Any) -> DataFrame:
    return spark.read.format("rqueue-history").options(**{"url": server.url, **options}).load()


def as_plain(row: Any) -> dict[str, Any]:
    """A row of the table with the values that the package's own reader gives."""
    found: dict[str, Any] = row.asDict()
    for name in TIMES:
        time = found[name]
        found[name] = 0 if time is None else round(time.replace(tzinfo=UTC).timestamp() * 1000)
    for name in ("group", "share", "worker", "error", "body"):
        found[name] = found[name] or ""
    if found["cause"] is not None:
        found["cause"] = json.loads(found["cause"])
    found["labels"] = found["labels"] or {}
    del found["row"]
    return found


@pytest.mark.each_spark
def test_every_row_with_all_its_columns(
    spark: SparkSession, server: EmbeddedRedis, queue: Queue
) -> None:
    settle(queue, 7, task=[f"task-{n}" for n in range(7)], group=["", "g", *[""] * 5])
    settle(queue, 3, outcome="retry", error="builtins.ValueError", due=T0 + 1, result_size=9)
    queue.send("cancelled").cancel()
    found = read(spark, server, queues=queue.name).collect()
    expected = plain_rows(queue.redis, queue.keys)
    assert len(expected) == 11
    found.sort(key=lambda row: ([int(part) for part in row["entry"].split("-")], row["row"]))
    assert [as_plain(row) for row in found] == expected
    assert [row["row"] for row in found] == [*range(7), *range(3), 0]
    assert found[10]["outcome"] == "cancelled"
    assert found[10]["worker"] is None


def test_the_schema_is_the_table_s(spark: SparkSession, server: EmbeddedRedis) -> None:
    assert read(spark, server, queues="nothing-here").schema == HISTORY
    assert read(spark, server, queues="nothing-here").collect() == []


def test_times_are_instants_and_zero_is_null(
    spark: SparkSession, server: EmbeddedRedis, queue: Queue
) -> None:
    settle(queue, 2, started=[0, T0 + 1], finished=T0 + 9)
    rows = read(spark, server, queues=queue.name).orderBy("row").collect()
    start = datetime.fromtimestamp(T0 / 1000, UTC).replace(tzinfo=None)
    assert [row["started"] for row in rows] == [None, start + timedelta(milliseconds=1)]
    assert [row["due"] for row in rows] == [None, None]
    assert rows[0]["finished"] == start + timedelta(milliseconds=9)


def test_refused_rows_are_left_out_and_the_others_keep_their_numbers(
    spark: SparkSession, server: EmbeddedRedis, queue: Queue
) -> None:
    settle(queue, 6, refuse=[0, 3])
    rows = read(spark, server, queues=queue.name).collect()
    assert sorted(row["row"] for row in rows) == [1, 2, 4, 5]
    assert not any(row["id"].startswith("refused") for row in rows)


def test_rows_of_scripts_say_why(spark: SparkSession, server: EmbeddedRedis, queue: Queue) -> None:
    queue.configure(max_deliveries=1)
    queue.send("doomed")
    consumer = queue.consumer(jobs=1, renew=False).register()
    (job,) = consumer.pull()
    consumer.retry(job, error={"type": "app.Broken", "message": "no"})
    consumer.close()
    attempt, row = read(spark, server, queues=queue.name).orderBy("entry", "row").collect()
    assert (attempt["outcome"], attempt["error"]) == ("retry", "app.Broken")
    assert (row["outcome"], row["error"]) == ("dead", "app.Broken")
    assert json.loads(row["cause"])["message"] == "no"


def test_many_entries_come_from_slices_of_even_work(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    write(client, QueueKeys(queue_name), 130, 30)
    frame = read(spark, server, queues=queue_name, partitionRows=600)
    rows = frame.select(f.spark_partition_id(), "queue", "entry", "row", "id").collect()
    sizes = Counter(row[0] for row in rows)
    assert len(sizes) == 7
    assert sizes.total() == 3900
    assert max(sizes.values()) - min(sizes.values()) <= 30
    assert len({row["id"] for row in rows}) == 3900
    assert len({row[1:4] for row in rows}) == 3900


def test_many_small_queues_share_slices(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, namespace: str
) -> None:
    for number in range(40):
        write(client, QueueKeys(f"q{number}", namespace), 2, 5, first=10 * number)
    frame = read(spark, server, namespace=namespace, partitionRows=100)
    assert frame.rdd.getNumPartitions() == 4
    assert frame.select("id").distinct().count() == 400
    assert frame.groupBy("queue").count().filter("count = 10").count() == 40


def test_a_name_with_a_comma_and_one_of_any_text(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, namespace: str
) -> None:
    names = ["a,b", "grün {1}", "50%"]
    for name in names:
        write(client, QueueKeys(name, namespace), 1, 3)
    every = read(spark, server, namespace=namespace)
    assert sorted(row[0] for row in every.select("queue").distinct().collect()) == sorted(names)
    two = read(spark, server, namespace=namespace, queues=r"a\,b, grün {1}")
    assert two.count() == 6


def test_between_two_ids(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    ids = write(client, QueueKeys(queue_name), 10, 3)

    def entries(**options: str) -> list[str]:
        found = read(spark, server, queues=queue_name, **options).select("entry").distinct()
        return sorted((row[0] for row in found.collect()), key=ids.index)

    assert entries(since=ids[3], until=ids[6]) == ids[3:7]
    assert entries(since=ids[8]) == ids[8:]
    assert entries(until=ids[0]) == ids[:1]
    assert entries(since=ids[5], until=ids[5]) == ids[5:6]


def test_between_two_times(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    keys = QueueKeys(queue_name)
    for ms in (1000, 2000, 3000):
        for number in range(2):
            client.xadd(keys.history, {"n": 1, "j": f'{{"id":"{ms}-{number}"}}'}, id=f"{T0 + ms}-*")
    client.hset(keys.meta, mapping={"v": 1, "history_rows": 6})

    def found(**options: str) -> list[str]:
        frame = read(spark, server, queues=queue_name, **options)
        return sorted(row[0] for row in frame.select("id").collect())

    later = datetime.fromtimestamp(T0 / 1000 + 2, UTC).isoformat()
    assert found(since=later) == ["2000-0", "2000-1", "3000-0", "3000-1"]
    assert found(until=later) == ["1000-0", "1000-1", "2000-0", "2000-1"]
    assert found(since=str(T0 + 2000), until=str(T0 + 2000)) == ["2000-0", "2000-1"]
    assert found(since=str(T0 + 3001)) == []


def test_what_was_trimmed_is_simply_not_there(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    keys = QueueKeys(queue_name)
    ids = write(client, keys, 10, 3)
    trim(client, keys, 4)
    assert read(spark, server, queues=queue_name).count() == 18
    assert read(spark, server, queues=queue_name, since=ids[2]).count() == 18


# -- columns and filters ---------------------------------------------------------------------------


def test_a_schema_chooses_columns(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    write(client, QueueKeys(queue_name), 2, 50)
    reader = spark.read.format("rqueue-history").options(url=server.url, queues=queue_name)
    frame = reader.schema("finished timestamp, id string").load()
    assert frame.columns == ["finished", "id"]
    assert frame.distinct().count() == 100
    with pytest.raises(AnalysisException, match="there is no column 'nothing'"):
        reader.schema("nothing string").load().collect()
    with pytest.raises(AnalysisException, match="'finished' is timestamp, not bigint"):
        reader.schema("finished bigint").load().collect()


def test_a_frame_may_be_used_with_several_filters(
    spark: SparkSession,
    server: EmbeddedRedis,
    client: redis.Redis,
    queue_name: str,
) -> None:
    """Spark would mix up filters that a source takes over, where its user lets it push them down;
    ours take over none."""
    write(client, QueueKeys(queue_name), 3, 100)
    pushes = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(pushes, "true")
    try:
        frame = read(spark, server, queues=queue_name)
        retries, acks = (frame.filter(f"outcome = '{outcome}'") for outcome in ("retry", "ack"))
        assert retries.count() == 30
        assert frame.count() == 300
        assert acks.count() == 270
        both = retries.union(acks).groupBy("outcome").count().collect()
        assert {row["outcome"]: row["count"] for row in both} == {"retry": 30, "ack": 270}
        other = acks.select(f.col("id").alias("other"), f.col("entry").alias("e"))
        joined = retries.join(other, f.col("entry") == f.col("e"))
        assert joined.count() == 30 * 90
    finally:
        spark.conf.unset(pushes)


def test_a_view_and_sql(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    write(client, QueueKeys(queue_name), 3, 100)
    read(spark, server, queues=queue_name).createOrReplaceTempView("past")
    said = spark.sql("select outcome, count(*) from past group by outcome order by outcome")
    assert [tuple(row) for row in said.collect()] == [("ack", 270), ("retry", 30)]
    spark.catalog.dropTempView("past")


def plan_of(frame: DataFrame) -> str:
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    return plan


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"queue": "a"}, "queue: no option of 'history'"),
        ({"quues": "a"}, "quues: there is no such option; did you mean queues?"),
        ({"queues": ""}, "queues: names no queue"),
        ({"since": "yesterday"}, "since: 'yesterday' is neither a time"),
        ({"since": "2030-01-01T00:00:00"}, "says no time zone"),
        ({"since": "latest"}, "since: latest is for streams"),
        ({"since": "2000-5", "until": "2000-4"}, "until: 2000-4 is before since (2000-5)"),
        ({"since": "2001", "until": "2000"}, "until: 2000 is before since (2001)"),
        ({"until": "earliest"}, "no row is between them"),
        ({"partitionRows": "none"}, "partitionRows: 'none' is not a whole number"),
        ({"cluster": "maybe"}, "cluster: 'maybe' is neither true nor false"),
        ({"maxRowsPerBatch": "5"}, "maxRowsPerBatch: no option of 'history'"),
        ({"url": "redis://:secret@127.0.0.1:1/0"}, "url: holds a user or password"),
        ({"url": "redis://127.0.0.1:1/0", "patience": "0s"}, "cannot reach Redis"),
    ],
)
def test_a_wrong_option_is_named(
    spark: SparkSession, server: EmbeddedRedis, options: dict[str, str], said: str
) -> None:
    with pytest.raises(CapturedException) as error:
        read(spark, server, **{"queues": "a", **options}).collect()
    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_an_entry_of_another_version_fails_the_read(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    keys = QueueKeys(queue_name)
    write(client, keys, 1, 3)
    entry = client.xadd(keys.history, {"n": 1, "b": b"\x09what?"})
    with pytest.raises(CapturedException) as error:
        read(spark, server, queues=queue_name).collect()
    assert f"entry {entry.decode()} of queue '{queue_name}'" in str(error.value)
    assert "another version" in str(error.value)


def test_an_entry_that_is_no_history_is_a_row_of_its_own(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    keys = QueueKeys(queue_name)
    write(client, keys, 1, 3)
    entry = client.xadd(keys.history, {"n": 1, "j": '{"id":"x","level":"high"}'}).decode()
    *others, damaged = read(spark, server, queues=queue_name).orderBy("entry").collect()
    assert len(others) == 3
    assert (damaged.entry, damaged.outcome) == (entry, "damaged")
    assert "column 'level' holds other values than int" in damaged.error


def test_functions_of_spark_work_on_it(
    spark: SparkSession, server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    write(client, QueueKeys(queue_name), 3, 100)
    frame = read(spark, server, queues=queue_name)
    waits = frame.select(
        (f.unix_millis("acquired") - f.unix_millis("enqueued")).alias("wait")
    ).distinct()
    assert [row[0] for row in waits.collect()] == [20]


def test_a_queue_that_is_spread_is_read_by_its_name(
    spark: SparkSession, server: EmbeddedRedis, queue_name: str
) -> None:
    """Its shards are the queues of its rows, and of its jobs."""
    with ShardedQueue(queue_name, server.url, shards=3) as sharded:
        sharded.table()
        for number in range(9):
            sharded.send("t", options=Options(id=f"j{number}"))
        its = sharded.queues()
        for number in range(3):
            sharded.cancel(f"j{number}")
        found = read(spark, server, queues=queue_name).collect()
        assert sorted(row.id for row in found) == ["j0", "j1", "j2"]
        assert {row.queue for row in found} <= {one.name for one in its}
        jobs = spark.read.format("rqueue").option("url", server.url).option("queues", queue_name)
        assert jobs.option("states", "ready").load().count() == 6
        sharded.cancel_all()
        sharded.advance()
        sharded._queue.redis.hset(sharded._queue.keys.shards, "3", "open 1 redis://elsewhere:1")
        with pytest.raises(Exception, match="shards 3 of queue"):
            read(spark, server, queues=queue_name).collect()
