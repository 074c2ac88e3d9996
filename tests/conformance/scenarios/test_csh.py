"""Curator's queue sharder (after TestQueueSharder): one name for several queues."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.queue_sharder import QueueSharder
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError

Sizes = dict[str, int]


def sizes(queue: Queue, names: list[str]) -> Sizes:
    return {name: queue.at(name).counts().ready for name in names}


def test_CSH_01_jobs_are_spread_over_the_queues(server: EmbeddedRedis, queue_name: str) -> None:
    """C-28: each gets its share, with the options of the first one."""
    with Queue(queue_name, server.url) as queue:
        queue.configure(priorities=3, max_jobs=1000)
        sharder = QueueSharder(queue, threshold=20, most=10, check=0)
        for _ in range(200):
            sharder.pick().send("t")
        found = sizes(queue, sharder.names())
        assert list(found) == sharder.possible
        assert sum(found.values()) == 200 and min(found.values()) >= 2
        assert queue.at(sharder.possible[-1]).counts().meta["max_jobs"] == "1000"


def test_CSH_02_two_sharders_agree(server: EmbeddedRedis, queue_name: str) -> None:
    """C-28: also one that comes later, and finds what is there."""
    with Queue(queue_name, server.url) as queue, Queue(queue_name, server.url) as other:
        first = QueueSharder(queue, threshold=2, check=0)
        second = QueueSharder(other, threshold=2, check=3600)
        assert second.pick().name == queue_name
        for _ in range(20):
            first.pick().send("t")
        assert second.pick().name == queue_name, "it looks again in an hour"
        assert first.names() == second.names() == QueueSharder(other, threshold=999).names()
        assert len(first.names()) > 1


def test_CSH_04_there_are_no_more_queues_than_the_most(
    server: EmbeddedRedis, queue_name: str
) -> None:
    """C-28: three sharders that look at each call; where all are long, any is taken. One that has
    been emptied to the half is taken again."""
    with Queue(queue_name, server.url) as queue:
        sharders = [QueueSharder(queue, threshold=4, most=3, check=0) for _ in range(3)]
        for number in range(100):
            sharders[number % 3].pick().send("t")
        names = sharders[0].names()
        assert [sharder.names() for sharder in sharders] == [names] * 3
        assert names == sharders[0].possible and len(names) == 3
        last = queue.at(names[2])
        last.cancel_all(limit=last.counts().ready - 3)
        sharders[0].names()
        assert sharders[0]._preferred == set()
        last.cancel_all(limit=1)
        assert {sharders[0].pick().name for _ in range(5)} == {names[2]}
        for wrong in ({"threshold": 0}, {"most": True}, {"check": "x"}):
            with pytest.raises(ConfigError):
                QueueSharder(queue, **wrong)  # type: ignore[arg-type]
