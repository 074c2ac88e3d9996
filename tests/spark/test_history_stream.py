"""The stream's offsets, limits and losses, on its reader itself; and whole streams on Spark."""

import json
import pickle
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.spark.errors import HistoryLost
from rqueue.spark.history.entries import Slice, before, pages
from rqueue.spark.history.stream import HistoryStreamReader, Offset, backlog
from rqueue.spark.options import HistoryStream, read_options
from rqueue.spark.schemas import HISTORY
from tests.support.history import settle, trim, write

ALL = ReadAllAvailable()
MakeReader = Callable[..., HistoryStreamReader]


@pytest.fixture
def namespace(queue_name: str) -> str:
    return queue_name.replace("[", "-").replace("]", "")


@pytest.fixture
def keys(namespace: str) -> QueueKeys:
    return QueueKeys("q", namespace)


@pytest.fixture
def make_reader(server: EmbeddedRedis, namespace: str) -> Iterator[MakeReader]:
    made: list[HistoryStreamReader] = []

    def make(**options: Any) -> HistoryStreamReader:
        given = {"url": server.url, "namespace": namespace, "queues": "q", **options}
        parsed = read_options(HistoryStream, {name: str(text) for name, text in given.items()})
        made.append(HistoryStreamReader(parsed, HISTORY))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def ids(reader: HistoryStreamReader, start: dict[str, str], end: dict[str, str]) -> list[list[str]]:
    """The ids of the rows of each slice."""
    found = []
    for part in reader.partitions(start, end):
        travelled = pickle.loads(pickle.dumps(reader))  # as to an executor
        found.append([id for batch in travelled.read(part) for id in batch["id"].to_pylist()])
    return found


def jobs(first: int, last: int) -> list[str]:
    return [f"job-{number}" for number in range(first, last)]


# -- offsets ---------------------------------------------------------------------------------------


@pytest.mark.each_server
def test_batch_after_batch(make_reader: MakeReader, client: redis.Redis, keys: QueueKeys) -> None:
    reader = make_reader()
    start = reader.initialOffset()
    assert start == {"q": "0-0/0"}
    written = write(client, keys, 3, 10)
    end = reader.latestOffset(start, ALL)
    assert end == {"q": f"{written[-1]}/30"}
    assert ids(reader, start, end) == [jobs(0, 30)]
    written = write(client, keys, 2, 10, first=30)
    later = reader.latestOffset(end, ALL)
    assert later == {"q": f"{written[-1]}/50"}
    assert ids(reader, end, later) == [jobs(30, 50)]
    assert ids(reader, later, later) == []
    assert backlog(start, later) == 50
    assert backlog(end, later) == 20
    assert reader.reportLatestOffset() == later


def test_nothing_new_leaves_the_offset_as_it_is(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, namespace: str
) -> None:
    reader = make_reader(queues="q,other,none")
    write(client, keys, 1)
    write(client, QueueKeys("other", namespace), 1)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    # Spark compares the texts
    assert json.dumps(reader.latestOffset(end, ALL)) == json.dumps(end)


def test_it_waits_for_news_and_is_told_of_them(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 1)
    reader = make_reader()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    found: list[dict[str, str]] = []
    thread = threading.Thread(target=lambda: found.append(reader.latestOffset(end, ALL)))
    thread.start()
    while not any("xread" in one["cmd"] for one in client.client_list()):
        assert thread.is_alive()
    (written,) = write(client, keys, 1)
    thread.join(10)
    assert found == [{"q": f"{written}/200"}]


@pytest.mark.parametrize("many", [False, True])
def test_since(make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, many: bool) -> None:
    written = write(client, keys, 300 if many else 6, 10)
    total = 10 * len(written)
    trim(client, keys, 2)
    earliest = make_reader().initialOffset()
    assert earliest == {"q": f"{written[1]}/20"}
    latest = make_reader(since="latest").initialOffset()
    assert latest == {"q": f"{written[-1]}/{total}"}
    reader = make_reader(since=written[4])
    start = reader.initialOffset()
    assert Offset.of(start["q"]).rows == 40
    end = reader.latestOffset(start, ALL)
    assert ids(reader, start, end) == [jobs(40, total)]


def test_a_stream_that_is_to_begin_where_nothing_is_left_says_so(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    written = write(client, keys, 6, 10)
    trim(client, keys, 4)
    with pytest.raises(HistoryLost) as lost:
        make_reader(since=written[2]).initialOffset()
    assert (lost.value.queue, lost.value.first) == ("q", written[4])
    lenient = make_reader(since=written[2], failOnDataLoss=False).initialOffset()
    assert lenient == {"q": f"{written[3]}/40"}
    assert make_reader(since=written[4]).initialOffset() == lenient | {
        "q": f"{before(written[4])}/40"
    }


def test_a_queue_that_is_gone_keeps_its_offset(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, namespace: str
) -> None:
    other = QueueKeys("other", namespace)
    write(client, keys, 1)
    write(client, other, 1)
    reader = make_reader(queues="*")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert set(end) == {"q", "other"}
    client.delete(other.meta, other.history)
    written = write(client, keys, 1)
    later = make_reader(queues="*").latestOffset(end, ALL)
    assert later == {"q": f"{written[0]}/200", "other": end["other"]}


def test_new_queues_are_found(
    make_reader: MakeReader,
    client: redis.Redis,
    keys: QueueKeys,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rqueue.spark.history.stream.SCAN_SECONDS", 0.0)
    reader = make_reader(queues="*")
    start = reader.initialOffset()
    assert start == {}
    write(client, keys, 1, 10)
    first = reader.latestOffset(start, ALL)
    assert ids(reader, start, first) == [jobs(0, 10)]
    write(client, QueueKeys("another", namespace), 2, 10, first=10)
    second = reader.latestOffset(first, ALL)
    assert ids(reader, first, second) == [jobs(10, 30)]


# -- limits ----------------------------------------------------------------------------------------


def walk(
    reader: HistoryStreamReader, start: dict[str, str], limit: ReadLimit
) -> Iterator[dict[str, str]]:
    """The ends of all batches until nothing is left."""
    reader.prepareForTriggerAvailableNow()
    while (end := reader.latestOffset(start, limit)) != start:
        yield end
        start = end


def test_the_default_limit_is_the_option(make_reader: MakeReader) -> None:
    assert make_reader(maxRowsPerBatch=7).getDefaultReadLimit() == ReadMaxRows(7)


def test_a_batch_has_no_more_rows_than_allowed(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 100, 10)
    reader = make_reader()
    start = reader.initialOffset()
    found: list[list[str]] = []
    for end in walk(reader, start, ReadMaxRows(95)):
        found.append([*chain(*ids(reader, start, end))])
        start = end
    assert [len(batch) for batch in found] == [90] * 11 + [10]
    assert [*chain(*found)] == jobs(0, 1000)


def test_an_entry_larger_than_the_limit_is_a_batch(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 4, 10)
    reader = make_reader()
    ends = list(walk(reader, reader.initialOffset(), ReadMaxRows(3)))
    assert [Offset.of(end["q"]).rows for end in ends] == [10, 20, 30, 40]


def test_queues_share_the_limit_and_none_starves(
    make_reader: MakeReader, client: redis.Redis, namespace: str
) -> None:
    write(client, QueueKeys("big", namespace), 90, 10)
    write(client, QueueKeys("small", namespace), 10, 10)
    for number in range(20):
        write(client, QueueKeys(f"tiny{number}", namespace), 1, 1)
    reader = make_reader(queues="*")
    start = reader.initialOffset()
    ends = list(walk(reader, start, ReadMaxRows(102)))
    steps = [backlog(one, other) for one, other in zip([start, *ends], ends, strict=False)]
    assert sum(steps) == 1020
    assert max(steps) <= 102
    assert len(steps) <= 12
    assert sum(Offset.of(ends[5][name]).rows > 0 for name in ends[5]) > 10


def test_a_stream_of_what_is_there_now_ends_there(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    written = write(client, keys, 5, 10)
    reader = make_reader()
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(client, keys, 5, 10, first=50)
    end = reader.latestOffset(start, ALL)
    assert end == {"q": f"{written[-1]}/50"}
    assert reader.latestOffset(end, ALL) == end


def test_slices_are_the_same_whenever_they_are_made(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, namespace: str
) -> None:
    for number in range(5):
        write(client, QueueKeys(f"q{number}", namespace), 7 * number + 1, 10)
    write(client, keys, 50, 10)
    reader = make_reader(queues="*", partitionRows=100)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    first = [part.ranges for part in reader.partitions(start, end) if isinstance(part, Slice)]
    write(client, keys, 50, 10)
    again = make_reader(queues="*", partitionRows=100).partitions(start, end)
    assert [part.ranges for part in again if isinstance(part, Slice)] == first
    assert len(first) >= 10
    assert sum(len(part) for part in ids(reader, start, end)) == 1250


def test_a_spark_that_does_not_say_where_a_batch_begins(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    """As 4.0 and 4.1: the reader remembers it."""
    written = write(client, keys, 10, 10)
    reader = make_reader(maxRowsPerBatch=30)
    first = reader.latestOffset()
    assert first == {"q": f"{written[-1]}/100"}
    assert reader.initialOffset() == {"q": "0-0/0"}
    write(client, keys, 10, 10, first=100)
    second = reader.latestOffset()
    assert ids(reader, first, second) == [jobs(100, 130)]
    assert ids(reader, second, reader.latestOffset()) == [jobs(130, 160)]
    again = make_reader(maxRowsPerBatch=30)  # with a batch to be repeated
    assert ids(again, first, second) == [jobs(100, 130)]
    assert ids(again, second, again.latestOffset()) == [jobs(130, 160)]


# -- losses ----------------------------------------------------------------------------------------


def test_trimmed_rows_that_were_read_are_no_loss(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 4, 10)
    reader = make_reader()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    trim(client, keys, 4)  # the whole stream, to the very entry
    assert reader.latestOffset(end, ALL) == end
    write(client, keys, 1, 10, first=40)
    later = reader.latestOffset(end, ALL)
    assert ids(reader, end, later) == [jobs(40, 50)]


def test_a_single_lost_entry_is_told(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    first = write(client, keys, 4, 10)
    reader = make_reader()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    second = write(client, keys, 3, 10)
    trim(client, keys, 5)
    with pytest.raises(HistoryLost) as lost:
        reader.latestOffset(end, ALL)
    found = lost.value
    assert (found.queue, found.wanted, found.trimmed, found.first) == (
        "q", first[-1], second[0], second[1],
    )  # fmt: skip
    assert "failOnDataLoss=false" in str(found)
    assert "history_rows_max" in str(found)


def test_a_loss_of_all_there_was_is_told(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    reader = make_reader()
    start = reader.initialOffset()
    written = write(client, keys, 3, 10)
    trim(client, keys, 3)
    with pytest.raises(HistoryLost, match="none is left") as lost:
        reader.latestOffset(start, ALL)
    assert lost.value.trimmed == written[-1]


def test_on_request_it_goes_on_and_counts_what_is_lost(
    make_reader: MakeReader,
    client: redis.Redis,
    keys: QueueKeys,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(client, keys, 4, 10)
    reader = make_reader(failOnDataLoss=False)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    write(client, keys, 5, 10, first=40)
    trim(client, keys, 7)
    later = reader.latestOffset(end, ALL)
    assert ids(reader, end, later) == [jobs(70, 90)]
    (warning,) = caplog.messages
    assert "history of queue 'q' is lost: 30 rows after entry" in warning
    caplog.clear()
    write(client, keys, 1, 10, first=90)
    last = reader.latestOffset(later, ALL)
    assert ids(reader, later, last) == [jobs(90, 100)]
    assert caplog.messages == []


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(20)])
def test_a_loss_within_what_is_there_now(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, limit: ReadLimit
) -> None:
    write(client, keys, 6, 10)
    reader = make_reader(failOnDataLoss=False)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(client, keys, 4, 10, first=60)
    trim(client, keys, 3)
    found: list[str] = []
    while (end := reader.latestOffset(start, limit)) != start:
        found += chain(*ids(reader, start, end))
        start = end
    assert found == jobs(30, 60)


def test_rows_trimmed_between_planning_and_reading(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys
) -> None:
    write(client, keys, 40, 10)
    for fail in (True, False):
        reader = make_reader(partitionRows=100, failOnDataLoss=fail)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        parts = [part for part in reader.partitions(start, end) if isinstance(part, Slice)]
        assert len(parts) > 1
        trim(client, keys, 3)
        if fail:
            with pytest.raises(HistoryLost):
                list(reader.read(parts[0]))
        else:
            left = parts[0].rows - 30
            assert sum(batch.num_rows for batch in reader.read(parts[0])) == left
        assert sum(batch.num_rows for batch in reader.read(parts[1])) > 50  # this one has all


def test_rows_trimmed_while_a_slice_is_read(
    client: redis.Redis, keys: QueueKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that were fetched before they went are no loss; the next ones are."""
    monkeypatch.setattr("rqueue.spark.history.entries._MOST", 32)
    written = write(client, keys, 100, 10)
    reading = pages(client, keys, "0-0", written[-1], exact=True)
    first = next(reading)
    trim(client, keys, len(first))
    second = next(reading)
    trim(client, keys, len(second) + 1)
    with pytest.raises(HistoryLost):
        next(reading)


def test_a_queue_that_was_added_to_the_list_begins_with_what_there_is(
    make_reader: MakeReader, client: redis.Redis, keys: QueueKeys, namespace: str
) -> None:
    other = QueueKeys("other", namespace)
    write(client, keys, 1, 10)
    write(client, other, 3, 10, first=100)
    trim(client, other, 1)
    reader = make_reader()
    start = reader.latestOffset(reader.initialOffset(), ALL)
    more = make_reader(queues="q,other")
    end = more.latestOffset(start, ALL)
    assert ids(more, start, end) == [jobs(110, 130)]
    # but among all queues of a namespace, one that nobody saw is new, and lost rows are a loss
    with pytest.raises(HistoryLost):
        make_reader(queues="*").latestOffset(start, ALL)


def test_what_the_scripts_trim_is_told_too(
    make_reader: MakeReader, server: EmbeddedRedis, namespace: str
) -> None:
    settings = Settings(url=server.url, namespace=namespace)
    with Queue("q", settings=settings) as queue:
        queue.configure(history_rows_max=50)
        settle(queue, 40)
        reader = make_reader()
        end = reader.latestOffset(reader.initialOffset(), ALL)
        settle(queue, 40)
        later = reader.latestOffset(end, ALL)
        assert [len(part) for part in ids(reader, end, later)] == [40]
        settle(queue, 30)
        settle(queue, 30)
        with pytest.raises(HistoryLost):
            reader.latestOffset(end, ALL)


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


@pytest.mark.each_spark
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
