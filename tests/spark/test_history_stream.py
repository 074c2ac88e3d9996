"""The stream's offsets, limits and losses, on its reader itself; and whole streams on Spark."""

import json
import threading
from itertools import chain

import pytest
import redis
from pyspark.sql.streaming.datasource import ReadMaxRows

from rqueue.protocol.keys import QueueKeys
from rqueue.spark.errors import HistoryLost
from rqueue.spark.history.entries import Slice, before
from rqueue.spark.history.stream import Offset, backlog
from tests.spark.reading import ALL, MakeReader, ids, jobs, walk
from tests.support.history import trim, write

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


def test_it_waits_for_news_and_returns_them(
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
