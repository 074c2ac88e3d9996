"""Curator's bounded queue."""

from collections.abc import Iterator
from time import monotonic

import pytest

from rqueue.errors import QueueFull
from tests.support.patience import PATIENCE
from tests.support.producers import KINDS, Producers, producing
from tests.support.queue_fixture import QueueFixture, ids, on_real_servers, one_kind


@pytest.fixture(params=KINDS)
def producers(request: pytest.FixtureRequest, q: QueueFixture) -> Iterator[Producers]:
    with producing(request.param, q) as made:
        yield made


@on_real_servers
def test_CBD_01_a_put_blocks_and_times_out(q: QueueFixture, producers: Producers) -> None:
    """C-10: one is with the consumer, one waits, and the third does not fit until that is done."""
    q.queue.configure(max_jobs=1, overflow="block")
    consumer = q.join(1)
    for id in "12":
        assert producers.enqueue(id).result(PATIENCE) == id
    with pytest.raises(QueueFull):
        producers.enqueue("3", max_wait=0.05).result(PATIENCE)
    ran = ids(consumer.pull(recall=True))
    for id in "345":
        blocked = producers.enqueue(id)
        producers.wait_blocked()
        ran += ids(consumer.settle(ack=ran[-1:], pull=True))
        assert blocked.result(PATIENCE) == id
    for _ in range(2):
        ran += ids(consumer.settle(ack=ran[-1:], pull=True))
    assert ran == ["1", "2", "3", "4", "5"]


@one_kind
def test_CBD_03_a_put_has_a_deadline_in_all(q: QueueFixture, producers: Producers) -> None:
    """C-10: a wait ends in time, however often the queue moves meanwhile. Others came first, and
    the queue never falls to its mark."""
    q.queue.configure(max_jobs=4, overflow="block", resume=25)
    q.put("1", "2", "3", "4")
    consumer = q.join(1)
    began = monotonic()
    blocked = producers.enqueue("x", max_wait=0.5)
    producers.wait_blocked()
    turn = 0
    while not blocked.done():
        turn += 1
        assert len(consumer.pull()) == 1
        consumer.settle(release=consumer.pull(recall=True))
    with pytest.raises(QueueFull, match=r"after \d"):
        blocked.result(PATIENCE)
    assert 0.5 <= monotonic() - began < PATIENCE
    assert turn > 0
