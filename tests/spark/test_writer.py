"""`df.write.format("rqueue")` and `writeStream`: each row once, whatever dies."""

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

from rqueue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector.jobs import all_jobs
from rqueue.model.signing import Signer
from rqueue.protocol.commands.write_log import write_progress
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.write.writer import batches
from rqueue.transport.redis_client import execute
from tests.support.redis_cluster import SmallCluster
from tests.support.snapshot import take_snapshot


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    """Rows whose args are their number."""
    rows = spark.range(count, numPartitions=partitions)
    return rows.selectExpr("'t' as task", "array(id) as args")


def write(frame: DataFrame, queue: Queue, /, **options: object) -> None:
    given = {"url": queue.settings.url, "queue": queue.name, **options}
    texts = {name: str(value) for name, value in given.items()}
    frame.write.format("rqueue").options(**texts).mode("append").save()


def found(queue: Queue) -> Counter[int]:
    return Counter(info.args[0] for info in all_jobs(queue.redis, queue.keys, "ready"))


def once(numbers: Iterable[int]) -> Counter[int]:
    return Counter(dict.fromkeys(numbers, 1))


def notes(queue: Queue) -> list[str]:
    """What is left of writers' runs."""
    left = take_snapshot(queue.redis, queue.keys).keys
    return sorted(name for name in left if name.startswith("writ"))


def forget(queue: Queue) -> Counter[int]:
    """All jobs end, so long ago that their ids are forgotten; returns them."""
    gone = found(queue)
    keys = queue.keys
    queue.redis.delete(keys.jobs, keys.ready(4), keys.ended, keys.ended_old)
    return gone


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.each_spark
def test_every_row_becomes_a_job(spark: SparkSession, queue: Queue) -> None:
    write(numbers(spark, 3000, 3), queue)
    assert found(queue) == once(range(3000))
    assert notes(queue) == []


def test_all_that_a_row_can_say(spark: SparkSession, queue: Queue) -> None:
    frame = spark.sql(
        f"""select '{queue.name}-b' as queue, 'mail' as task, struct(1, 'x') as args,
        map('to', array('a', 'b')) as kwargs, 9 as level, interval '90' second as delay,
        5 as max_deliveries, 2 as max_crashes, map('tenant', 'a') as headers,
        map('zone', 'eu') as labels,
        cast(null as string) as group, 'mine' as id, '30s' as time_limit"""
    )
    write(frame, queue)
    (info,) = all_jobs(queue.redis, QueueKeys(f"{queue.name}-b"), "scheduled")
    assert (info.id, info.task, info.args) == ("mine", "mail", [1, "x"])
    assert info.kwargs == {"to": ["a", "b"]}
    assert (info.level, info.max_deliveries, info.max_crashes) == (9, 5, 2)
    assert 85_000 < info.due_ms - info.enqueued_ms <= 90_000
    assert info.opts == {"headers": {"tenant": "a"}, "labels": {"zone": "eu"}, "time_limit": 30.0}


def test_nothing_is_nothing(spark: SparkSession, queue: Queue) -> None:
    write(numbers(spark, 0), queue)
    assert take_snapshot(queue.redis, queue.keys).keys == {}


def test_a_run_with_a_name_may_come_again(spark: SparkSession, queue: Queue) -> None:
    write(numbers(spark, 500), queue, runId="load-1")
    assert forget(queue) == once(range(500))
    # in another order, with some more
    again = numbers(spark, 500).union(numbers(spark, 0)).coalesce(2).sortWithinPartitions("args")
    write(again, queue, runId="load-1")
    assert found(queue) == Counter()
    write(numbers(spark, 500), queue, runId="load-2")
    assert found(queue) == once(range(500))
    assert execute(queue.redis, write_progress(queue.keys, "load-1")) == (500, 500)
    assert all(queue.redis.pttl(queue.keys.base + name) > 0 for name in notes(queue))


def test_ids_of_a_column(spark: SparkSession, queue: Queue) -> None:
    frame = numbers(spark, 100).selectExpr("*", "concat('job-', args[0] % 60) as key")
    write(frame, queue, idColumn="key")
    write(frame, queue, idColumn="key")
    assert sorted(info.id for info in all_jobs(queue.redis, queue.keys, "ready")) == sorted(
        f"job-{n}" for n in range(60)
    )


def test_tasks_that_die_are_tried_again(
    cluster_spark: SparkSession, queue: Queue, tmp_path: Path
) -> None:
    """The Python of each partition's first attempt is killed after three quarters of its rows."""

    @udf("bigint", useArrow=False)
    def die_once(number: int) -> int:
        import os

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if number % 2000 == 1500 and context.attemptNumber() == 0:
            Path(tmp_path, str(context.partitionId())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    rows = cluster_spark.range(4000, numPartitions=2).select(die_once("id").alias("n"))
    cluster_spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        write(rows.selectExpr("'t' as task", "array(n) as args"), queue, batchSize=10)
    finally:
        cluster_spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]
    assert found(queue) == once(range(4000))
    assert notes(queue) == []


def test_envelopes_are_signed(spark: SparkSession, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("RQUEUE_SIGNING_KEYS=k1:0123456789abcdef\n")
    write(numbers(spark, 1), queue, credentialsFile=file)
    (info,) = all_jobs(queue.redis, queue.keys, "ready")
    value = queue.redis.hget(queue.keys.jobs, info.id)
    body = value.partition(b";")[2]
    signer = Signer({"k1": "0123456789abcdef"})
    assert orjson.loads(signer.verify(queue.name, info.id, body).json) == ["t", [0]]


def test_queues_of_a_redis_cluster(
    spark: SparkSession, redis_cluster: SmallCluster, queue_name: str
) -> None:
    rows = numbers(spark, 900).selectExpr("*", f"concat('{queue_name}-', args[0] % 9) as queue")
    writer = rows.write.format("rqueue").mode("append")
    writer.options(url=redis_cluster.url, cluster="true", runId="r").save()
    writer.options(url=redis_cluster.url, cluster="true", runId="r").save()
    reader = spark.read.format("rqueue").options(url=redis_cluster.url, cluster="true")
    names = ",".join(f"{queue_name}-{n}" for n in range(9))
    jobs = reader.load(queues=names)
    assert jobs.count() == 900
    assert jobs.groupBy("queue").count().where("count = 100").count() == 9


# -- rows that are no jobs -------------------------------------------------------------------------


def with_bad_rows(spark: SparkSession, count: int) -> DataFrame:
    text = "if(id % 100 = 57, '[', concat('[', id, ']')) as args"
    return spark.range(count, numPartitions=2).selectExpr("'t' as task", text)


def test_a_bad_row_ends_the_write_and_the_next_one_completes_it(
    spark: SparkSession, queue: Queue
) -> None:
    spark.sparkContext.setJobGroup(queue.name, "bad rows")
    with pytest.raises(CapturedException) as error:
        write(with_bad_rows(spark, 600), queue, batchSize=10)
    said = str(error.value)
    tracker = spark.sparkContext.statusTracker()
    infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(queue.name)]
    stages = [tracker.getStageInfo(stage) for info in infos if info for stage in info.stageIds]
    failures = [stage.numFailedTasks for stage in stages if stage]
    assert failures and not any(failures), "a task that fails is tried again, with the same row"
    assert "row 57 of partition " in said
    assert "is no job: args: is no JSON" in said
    assert '{"task":"t","args":"["}' in said
    named = re.search(r"with option runId=(\S+)", said)
    assert named
    before = found(queue)
    assert before == once([*range(57), *range(300, 357)])
    assert forget(queue) == before
    good = with_bad_rows(spark, 600).selectExpr("task", "replace(args, '[', '') as args")
    good = good.where("args != ''").selectExpr("task", "concat('[', args) as args")
    write(good, queue, runId=named[1])
    assert before + found(queue) == once(n for n in range(600) if n % 100 != 57)


def test_bad_rows_are_put_aside(spark: SparkSession, queue: Queue, tmp_path: Path) -> None:
    aside = tmp_path / "new" / "aside"
    for _ in range(2):  # the second time replaces what the first one wrote
        write(with_bad_rows(spark, 600), queue, runId="r", badRows="side", badRowsPath=aside)
        rows = spark.read.json(str(aside)).collect()
        assert sorted((row.run, row.epoch, row.partition, row.row) for row in rows) == [
            ("r", 0, partition, row) for partition in (0, 1) for row in (57, 157, 257)
        ]
        assert {row.record for row in rows} == {'{"task":"t","args":"["}'}
        assert all(row.reason.startswith("args: is no JSON") for row in rows)
        assert found(queue) == once(n for n in range(600) if n % 100 != 57)
        assert [name for name in os.listdir(aside) if name.startswith("_")] == []


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("'t' as tsk", {}, "column 'tsk': a job has no such column; did you mean task?"),
        ("1 as args", {"task": "t"}, "column 'args': is int; it may be string, array, struct"),
        ("'t' as task", {"queue": ""}, "queue: there is no column 'queue'"),
        ("'t' as task", {"badRows": "side"}, "badRowsPath: where do bad rows go?"),
        ("'t' as task", {"badRowsPath": "x"}, "badRows: set it to side"),
        ("'t' as task", {"batchSize": "1001"}, "batchSize: 1001 is above 1000"),
        ("'t' as task", {"runId": "a,b"}, "runId: 'a,b' is not 1 to 100 letters"),
        ("'t' as task", {"url": "redis://:secret@127.0.0.1:1"}, "url: holds a user or password"),
        (
            "'t' as task",
            {"url": "redis://127.0.0.1:1", "patience": "0"},
            "cannot reach Redis",
        ),
    ],
)
def test_what_is_wrong_is_named(
    spark: SparkSession, queue: Queue, columns: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(CapturedException) as error:
        write(spark.sql(f"select {columns}"), queue, **options)
    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_a_queue_cannot_be_overwritten(spark: SparkSession, queue: Queue) -> None:
    with pytest.raises(CapturedException, match="mode: rows are added to a queue"):
        numbers(spark, 1).write.format("rqueue").options(
            url=str(queue.settings.url), queue=queue.name
        ).mode("overwrite").save()


def test_rows_where_spark_gives_no_arrow() -> None:
    """As PySpark 4.0 does in a stream."""
    schema = StructType(
        [
            StructField("n", LongType()),
            StructField("s", StructType([StructField("a", StringType())])),
            StructField("m", MapType(StringType(), LongType())),
            StructField("t", TimestampType()),
        ]
    )
    rows = [Row(n=n, s=Row(a=str(n)), m={"k": n}, t=None) for n in range(2500)]
    made = list(batches(iter(rows), schema))
    assert [batch.num_rows for batch in made] == [1000, 1000, 500]
    assert made[2].to_pylist(maps_as_pydicts="strict")[-1] == {
        "n": 2499,
        "s": {"a": "2499"},
        "m": {"k": 2499},
        "t": None,
    }
    assert list(batches(iter(made), schema)) == made
    assert list(batches(iter(()), schema)) == []


# -- streams ---------------------------------------------------------------------------------------


def put_files(folder: Path, first: int, files: int, rows: int) -> None:
    """One file is one epoch."""
    folder.mkdir(exist_ok=True)
    for file in range(first, first + files):
        lines = (orjson.dumps({"n": file * rows + row}) for row in range(rows))
        draft = folder / f".{file:05}"
        draft.write_bytes(b"\n".join(lines))
        draft.rename(folder / f"{file:05}.json")


def run_stream(spark: SparkSession, queue: Queue, folder: Path, **options: object) -> None:
    """Write all that is there."""
    rows = spark.readStream.schema("n long").option("maxFilesPerTrigger", "1")
    jobs = rows.json(str(folder / "in")).selectExpr("'t' as task", "array(n) as args")
    given = {"url": queue.settings.url, "queue": queue.name, **options}
    texts = {name: str(value) for name, value in given.items()}
    query = (
        jobs.writeStream.format("rqueue")
        .options(**texts)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def uncommit(folder: Path, epoch: int) -> None:
    """As if the driver had died before it noted that this epoch was written."""
    commits = folder / "checkpoint" / "commits"
    (commits / str(epoch)).unlink()
    (commits / f".{epoch}.crc").unlink(missing_ok=True)


def test_a_stream_and_a_repeated_epoch(spark: SparkSession, queue: Queue, tmp_path: Path) -> None:
    put_files(tmp_path / "in", 0, 4, 100)
    run_stream(spark, queue, tmp_path)
    assert forget(queue) == once(range(400))
    # the last epoch's log is there, the others are not
    assert [name.split(":")[2] for name in notes(queue) if name.startswith("written:")] == ["3"]
    uncommit(tmp_path, 3)
    put_files(tmp_path / "in", 4, 1, 100)
    run_stream(spark, queue, tmp_path)
    assert found(queue) == once(range(400, 500))


def test_an_epoch_that_was_written_in_part(
    spark: SparkSession, queue: Queue, tmp_path: Path
) -> None:
    put_files(tmp_path / "in", 0, 1, 400)
    run_stream(spark, queue, tmp_path)
    uncommit(tmp_path, 0)
    # the driver died when 150 rows were there, and the workers have done these since
    (log,) = (name for name in notes(queue) if name.startswith("written:"))
    written = [info.args[0] for info in all_jobs(queue.redis, queue.keys, "ready")]
    marks = queue.redis.get(queue.keys.base + log)
    queue.redis.set(queue.keys.base + log, marks[: 150 * 8])
    queue.redis.hdel(queue.keys.write(log.split(":")[1]), "epoch")
    forget(queue)
    run_stream(spark, queue, tmp_path)
    assert found(queue) == once(written[150:])


def test_a_checkpoint_that_was_put_back_is_noticed(
    spark: SparkSession, queue: Queue, tmp_path: Path
) -> None:
    put_files(tmp_path / "in", 0, 1, 10)
    run_stream(spark, queue, tmp_path)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "old")
    put_files(tmp_path / "in", 1, 2, 10)
    run_stream(spark, queue, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "old").rename(tmp_path / "checkpoint")
    with pytest.raises(CapturedException, match="checkpoint of the stream was put back"):
        run_stream(spark, queue, tmp_path)
    assert found(queue) == once(range(30))
    run_stream(spark, queue, tmp_path, runId="again")
    assert found(queue) == once(range(30)) + once(range(10, 30))
