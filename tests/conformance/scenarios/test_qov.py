"""Qpid's overflow policies: what becomes of a job that does not fit."""

from collections.abc import Iterator

import pytest

from rqueue.errors import QueueFull
from rqueue.protocol import room_wait
from rqueue.protocol.commands.room import await_room
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.producers import KINDS, Producers, producing
from tests.support.queue_fixture import QueueFixture, ids, one_kind


@pytest.fixture(params=KINDS)
def producers(request: pytest.FixtureRequest, q: QueueFixture) -> Iterator[Producers]:
    with producing(request.param, q) as made:
        yield made


def full(q: QueueFixture) -> QueueFull:
    """How one more job is refused."""
    with pytest.raises(QueueFull) as caught:
        q.put("more", max_wait=0)
    return caught.value


@one_kind
def test_QOV_06_a_producer_blocks_and_resumes_at_the_mark(
    q: QueueFixture, producers: Producers
) -> None:
    """Q-67, A-25, X-16: exact, so one that exceeds the limit is not taken first, as Qpid does."""
    q.queue.configure(max_jobs=3, overflow="block", resume=34)
    consumer = q.join(1)
    q.put("1", "2", "3", "4")
    blocked = producers.enqueue("5")
    producers.wait_blocked()
    assert ids(consumer.pull(recall=True)) == ["1"]
    consumer.ack("1")
    assert ids(consumer.pull()) == ["2"]
    assert q.queue.counts().more["producers"] == 1, "two jobs wait: above the mark of one"
    consumer.ack("2")
    assert ids(consumer.pull()) == ["3"]
    assert blocked.result(PATIENCE) == "5"
    assert q.queue.counts().ready == 2


@one_kind
def test_QOV_07_a_producer_resumes_at_once_where_the_mark_is_the_limit(
    q: QueueFixture, producers: Producers
) -> None:
    """Q-67."""
    q.queue.configure(max_jobs=4, overflow="block", resume=100)
    q.put("1", "2", "3", "4")
    blocked = producers.enqueue("5")
    producers.wait_blocked()
    assert ids(q.join(1).pull()) == ["1"]
    assert blocked.result(PATIENCE) == "5"
    assert q.queue.counts().ready == 4


@one_kind
def test_QOV_09_a_producer_that_waits_for_a_queue_that_is_deleted(
    q: QueueFixture, producers: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """a) Q-67: who waits goes on, into the queue that is made anew, which is empty and plain."""
    monkeypatch.setattr(room_wait, "SLICE_S", 0.2)
    q.queue.configure(max_jobs=1, overflow="block")
    q.put("1")
    blocked = producers.enqueue("2")
    producers.wait_blocked()
    q.queue.redis.delete(*q.queue.redis.scan_iter(q.queue.keys.base + "*", count=10_000))
    assert blocked.result(PATIENCE) == "2"
    q.put("3", "4")
    assert q.listed() == ["2", "3", "4"]


@one_kind
def test_QOV_09_a_purge_lets_all_in_that_fit(q: QueueFixture, producers: Producers) -> None:
    """b) Q-67: a queue that is emptied."""
    q.queue.configure(max_jobs=3, overflow="block")
    q.put("1", "2", "3")
    blocked = [producers.enqueue(f"b{number}") for number in range(3)]
    producers.wait_blocked(3)
    assert q.purge() == 3
    assert {one.result(PATIENCE) for one in blocked} == {"b0", "b1", "b2"}
    assert full(q).waiting == 3


@pytest.mark.parametrize("held", [False, True])
def test_QOV_11_what_does_not_fit_is_refused(q: QueueFixture, held: bool) -> None:
    """Q-67, X-16: the limit counts what waits, and what consumers hold where that is asked."""
    q.queue.configure(max_jobs=2, count_held=held)
    q.put("1")
    q.put("2", delay_ms=60_000)
    before = q.look().keys
    refused = full(q)
    assert (refused.limit, refused.waiting, refused.jobs, refused.waits) == (2, 2, 1, False)
    assert "is full: 2 of at most 2 jobs; 1 job did not fit; nothing was stored" in str(refused)
    assert q.look().keys == before
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["1"]
    if held:
        assert full(q).waiting == 2
        consumer.ack("1")
    q.put("3")
    assert full(q).waiting == 2


@one_kind
def test_QOV_12_what_is_kept_for_others_counts(q: QueueFixture) -> None:
    """Q-67: a producer that dies with its grant loses it at the deadline, one that gives up at
    once."""
    q.queue.configure(max_jobs=1, overflow="block")

    def asks(producer: str, wait_ms: int = 60_000) -> str:
        return execute(q.queue.redis, await_room(q.queue.keys, producer, 1, wait_ms))

    assert asks("dies") == "granted"
    assert asks("waits") == "waits"
    refused = full(q)
    assert (refused.waiting, refused.granted) == (0, 1)
    move_time(q.queue, 5001)
    assert asks("last") == "waits"
    assert q.look().scores("grants").keys() == {"waits"}
    assert asks("waits", 0) == "over"
    assert q.look().scores("grants").keys() == {"last"}
    asks("last", 0)
    q.put("1")
    assert set(q.look().keys) == {"meta", "jobs", "ready:4"}
