"""`spark.read.format("rqueue")`: jobs of every state as a table, while workers go on."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rqueue import Call, Options, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.spark.jobs.pages import pages
from rqueue.spark.jobs.source import JobsReader, JobsSource, Piece
from rqueue.spark.options import JobsRead, read_options
from rqueue.spark.patience import Reader
from rqueue.spark.schemas import JOBS

NAMES = JOBS.fieldNames()


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def options(queue: Queue, **more: object) -> dict[str, str]:
    given: dict[str, object] = {"url": queue.settings.url, "queues": queue.name, **more}
    return {name: str(value) for name, value in given.items()}


def table(spark: SparkSession, queue: Queue, **more: object) -> DataFrame:
    return spark.read.format("rqueue").options(**options(queue, **more)).load()


def reader(queue: Queue, columns: str = "", **more: object) -> JobsReader:
    """A reader in this process, as Spark makes it in its own."""
    schema = JOBS if not columns else type(JOBS)([JOBS[name] for name in columns.split()])
    return JobsReader(read_options(JobsRead, options(queue, **more)), schema)


def rows(made: JobsReader) -> list[dict[str, Any]]:
    return [
        row for part in made.partitions() for batch in made.read(part) for row in batch.to_pylist()
    ]


def fill(queue: Queue, count: int, task: str = "t", **how: Any) -> None:
    queue.enqueue_many(Call(task, (f"{task}{n}",), None, Options(**how)) for n in range(count))


@pytest.mark.each_spark
def test_all_states_with_all_that_is_known(spark: SparkSession, queue: Queue) -> None:
    queue.enqueue_many(
        [
            Call("held", options=Options(id="h")),
            Call("dead", ("x",), options=Options(id="d", max_deliveries=7, max_crashes=2)),
        ]
    )
    consumer = queue.consumer(name="c", jobs=2).register()
    held, dead = consumer.pull()
    consumer.settle(reject=[(dead, {"type": "E", "message": "no"})])
    headers, labels = {"tenant": "a"}, {"gpu": True, "zone": "eu"}
    opts = Options(id="r", priority=7, headers=headers, labels=labels)
    queue.send("ready", (1, {"a": None}), {"k": "ä"}, opts)
    queue.send("later", options=Options(id="s", at_ms=4_000_000_000_000))
    found = {row["id"]: row.asDict() for row in table(spark, queue).collect()}
    assert {id_: (row["state"], row["task"]) for id_, row in found.items()} == {
        "h": ("held", "held"),
        "d": ("dead", "dead"),
        "r": ("ready", "ready"),
        "s": ("scheduled", "later"),
    }
    ready = found["r"]
    assert list(ready) == NAMES
    assert (ready["args"], ready["kwargs"], ready["level"]) == ('[1,{"a":null}]', '{"k":"ä"}', 7)
    assert (ready["headers"], ready["labels"]) == (headers, {"gpu": "true", "zone": "eu"})
    assert {name for name in NAMES if ready[name] is None} == {
        *("group", "share", "due", "max_deliveries", "max_crashes", "consumer", "worker", "cause"),
        *("errors", "problem", "expires"),
    }
    assert found["s"]["due"] == datetime.fromtimestamp(4e9, UTC).replace(tzinfo=None)
    assert found["h"]["consumer"] == "c"
    delivered = {id_ for id_, row in found.items() if row["deliveries"] == 1}
    assert delivered == {"h", "d"}
    assert (found["d"]["max_deliveries"], found["d"]["max_crashes"]) == (7, 2)
    assert {row["crashes"] for row in found.values()} == {0}
    assert '"message":"no"' in found["d"]["cause"]
    assert ['"message":"no"' in error for error in found["d"]["errors"]] == [True]
    consumer.settle(ack=[held])
    consumer.close()


def test_long_lists_are_divided_and_each_job_is_there_once(
    spark: SparkSession, queue: Queue
) -> None:
    fill(queue, 950)
    fill(queue, 430, "urgent", priority=9)
    fill(queue, 300, "later", delay_ms=10**9)
    jobs = table(spark, queue, partitionRows=200, pageSize=7)
    assert jobs.rdd.getNumPartitions() == 5 + 3 + 1
    found = Counter((row.state, row.task) for row in jobs.collect())
    assert found == {("ready", "t"): 950, ("ready", "urgent"): 430, ("scheduled", "later"): 300}
    assert jobs.select("id").distinct().count() == 1680
    assert jobs.where("state = 'ready'").selectExpr("max(position)").collect()[0][0] == 1380


def test_promoted_jobs_and_cancelled_ones(spark: SparkSession, queue: Queue) -> None:
    fill(queue, 20)
    fill(queue, 5, "promoted", delay_ms=10**9)
    ids = [row.id for row in table(spark, queue, states="scheduled").collect()]
    queue.promote(*ids)
    cancelled = queue.send("gone", options=Options(id="gone"))
    fill(queue, 5, "behind")
    cancelled.cancel()
    found = rows(reader(queue, columns="id task due position", pageSize=1))
    assert Counter(row["task"] for row in found) == {"t": 20, "promoted": 5, "behind": 5}
    assert all((row["due"] is not None) == (row["task"] == "promoted") for row in found)
    assert sorted(row["position"] for row in found if row["task"] == "promoted") == [*range(21, 26)]


def test_many_cancelled_jobs_in_a_row_do_not_end_a_read(queue: Queue) -> None:
    fill(queue, 3)
    for n in range(70):
        queue.send("gone", options=Options(id=f"gone{n}"))
    fill(queue, 3, "behind")
    for n in range(70):
        queue.cancel(f"gone{n}")
    assert len(rows(reader(queue, pageSize=1))) == 6


def test_parked_jobs_have_a_state_of_their_own(queue: Queue, client: redis.Redis) -> None:
    fill(queue, 2, "known", delay_ms=10**9)
    fill(queue, 1, "unknown", delay_ms=10**9)
    parked = next(row["id"] for row in rows(reader(queue)) if row["task"] == "unknown")
    client.hset(queue.keys.parked, parked, '{"kind":"unknown_task"}')
    found = {row["task"]: (row["state"], row["cause"]) for row in rows(reader(queue))}
    assert found == {
        "known": ("scheduled", None),
        "unknown": ("parked", '{"kind":"unknown_task"}'),
    }
    assert [row["id"] for row in rows(reader(queue, states="parked"))] == [parked]
    assert len(rows(reader(queue, states="scheduled"))) == 2


def test_jobs_that_wait_for_others_have_a_state_of_their_own(queue: Queue) -> None:
    fill(queue, 1)
    first = next(row["id"] for row in rows(reader(queue)))
    queue.send("then", options=Options(id="then", after=[first]))
    assert {row["id"]: row["state"] for row in rows(reader(queue))} == {
        first: "ready",
        "then": "deferred",
    }
    assert [row["task"] for row in rows(reader(queue, states="deferred"))] == ["then"]


def test_a_job_that_cannot_be_read_says_why(queue: Queue, client: redis.Redis) -> None:
    fill(queue, 1)
    (row,) = rows(reader(queue))
    client.hset(queue.keys.jobs, row["id"], f"{row['position']},5;nonsense")
    (row,) = rows(reader(queue))
    assert row["problem"].startswith("not an envelope")
    assert (row["task"], row["args"], row["level"], row["size"]) == (None, None, 4, 8)
    assert rows(reader(queue, tasks="t")) == []


# -- a snapshot ------------------------------------------------------------------------------------


def test_what_joins_behind_the_planned_end_is_not_read(queue: Queue) -> None:
    fill(queue, 10)
    fill(queue, 3, "later", delay_ms=10**9)
    made = reader(queue)
    parts = made.partitions()
    fill(queue, 10, "new")
    fill(queue, 5, "new", priority=8)
    fill(queue, 3, "new", delay_ms=2 * 10**9)
    found = [row for part in parts for batch in made.read(part) for row in batch.to_pylist()]
    assert Counter(row["task"] for row in found) == {"t": 10, "later": 3}


def test_jobs_taken_and_released_meanwhile_appear_once(queue: Queue) -> None:
    """Between any two pages all that waits is taken, and released to its places."""
    fill(queue, 60)
    made = reader(queue, pageSize=5, states="ready,held", maxRowsPerSecond=0)
    seen: Counter[str] = Counter()
    with made.access.client() as client, queue.consumer(name="c", jobs=30) as consumer:
        for part in made.partitions():
            assert isinstance(part, Piece)
            assert part.part is not None
            for page in pages(Reader(client), queue.keys, part.part, {"ready"}, 5):
                seen.update(found.job.id for found in page)
                taken = consumer.pull()
                assert len(taken) == 30
                consumer.settle(release=taken)
    assert set(seen.values()) == {1}
    assert len(seen) == 60


def test_jobs_rescheduled_meanwhile_appear_once(queue: Queue, client: redis.Redis) -> None:
    fill(queue, 20, delay_ms=10**9)
    made = reader(queue, pageSize=5, maxRowsPerSecond=0)
    (part,) = made.partitions()
    assert isinstance(part, Piece)
    assert part.part is not None
    seen: Counter[str] = Counter()
    last = client.zrange(queue.keys.scheduled, -1, -1, withscores=True)[0][1]
    for page in pages(Reader(client), queue.keys, part.part, {"scheduled"}, 5):
        seen.update(found.job.id for found in page)
        first, _ = client.zrange(queue.keys.scheduled, 0, 0, withscores=True)[0]
        client.zadd(queue.keys.scheduled, {first: last})  # shown already; now it stands at the end
    assert set(seen.values()) == {1}
    assert len(seen) == 20


# -- less than all ---------------------------------------------------------------------------------


def test_a_frame_may_be_used_with_several_filters(spark: SparkSession, queue: Queue) -> None:
    """Spark would mix up filters that a source takes over; this one takes over none."""
    fill(queue, 30)
    fill(queue, 20, "u", priority=9)
    jobs = table(spark, queue)
    both = jobs.where("task = 't'").union(jobs.where("task = 'u'"))
    assert {row.task: row["count"] for row in both.groupBy("task").count().collect()} == {
        "t": 30,
        "u": 20,
    }
    assert jobs.where("level = 9").count() == 20
    assert jobs.count() == 50


def test_options_spare_reading(queue: Queue) -> None:
    fill(queue, 5)
    fill(queue, 5, "u", delay_ms=10**9)
    assert len(rows(reader(queue, columns="id", tasks="u"))) == 5
    assert len(rows(reader(queue, columns="id", states="ready"))) == 5
    assert rows(reader(queue, states="blocked")) == []
    assert reader(queue, queues="other").partitions() == [Piece(None)]


def test_jobs_of_some_levels(queue: Queue) -> None:
    fill(queue, 3)
    fill(queue, 4, "u", priority=9)
    fill(queue, 5, "later", delay_ms=10**9, priority=9)
    made = reader(queue, states="ready", levels="9, 3")
    (part,) = made.partitions()
    assert isinstance(part, Piece)
    assert part.part is not None
    assert (part.part.which, part.part.level) == ("ready", 9)
    found = rows(reader(queue, levels="9"))
    assert Counter(row["task"] for row in found) == {"u": 4, "later": 5}
    assert len(rows(reader(queue, levels="4", columns="id"))) == 3
    for text in ("12", "high"):
        with pytest.raises(ConfigError, match="levels: "):
            reader(queue, levels=text)


def test_columns_that_nobody_asks_for_are_not_read(spark: SparkSession, queue: Queue) -> None:
    fill(queue, 5)
    jobs = spark.read.format("rqueue").options(**options(queue)).schema("task string, level int")
    assert [tuple(row) for row in jobs.load().collect()] == [("t", 4)] * 5
    assert spark.read.format("rqueue").options(**options(queue)).load().count() == 5


def test_several_queues_and_all_of_a_namespace(spark: SparkSession, queue: Queue) -> None:
    namespace = f"ns-{queue.name}"
    names = [f"{queue.name}-{n}" for n in range(3)]
    for name in names:
        with Queue(name, queue.settings.url, namespace=namespace) as one:
            fill(one, 2)
    every = table(spark, queue, queues="*", namespace=namespace)
    assert {row.queue: row["count"] for row in every.groupBy("queue").count().collect()} == (
        dict.fromkeys(names, 2)
    )
    two = table(spark, queue, queues=",".join(names[:2]), namespace=namespace)
    assert two.where(f"queue = '{names[1]}'").count() == 2
    assert two.count() == 4


def test_a_queue_that_is_not_there_has_no_jobs(spark: SparkSession, queue: Queue) -> None:
    assert table(spark, queue).collect() == []


def test_a_wrong_option_is_named(spark: SparkSession, queue: Queue) -> None:
    with pytest.raises(AnalysisException, match="pageSize: 501 is above 500"):
        table(spark, queue, pageSize=501).collect()
    with pytest.raises(AnalysisException, match="stats: there is no such option; did you mean"):
        table(spark, queue, stats="ready").collect()


def test_the_name_of_the_source() -> None:
    assert JobsSource.name() == "rqueue"
