"""A history stream tells of rows that were trimmed before they were read, and of no others."""

from itertools import chain

import pytest
import redis
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.spark.errors import HistoryLost
from rqueue.spark.history.entries import Slice, pages
from rqueue.spark.patience import Reader
from tests.spark.reading import ALL, MakeReader, ids, jobs
from tests.support.history import settle, trim, write

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


def test_a_single_lost_entry_is_reported(
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


def test_a_loss_of_all_there_was_is_reported(
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
    reading = pages(Reader(client), keys, "0-0", written[-1], exact=True)
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


def test_what_the_scripts_trim_is_reported_too(
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
