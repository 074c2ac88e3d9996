"""Curator's queue sharder (after TestQueueSharder): one name for several queues."""

import pytest

from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError


def sizes(queue: ShardedQueue) -> list[int]:
    return [its.counts().ready for its in queue.queues()]


def test_CSH_01_jobs_are_spread_over_the_queues(server: EmbeddedRedis, queue_name: str) -> None:
    """C-28: each gets its share, with the options of the first one."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.configure(priorities=3, max_jobs=1000)
        for number in range(200):
            queue.send("t")
            if number % 20 == 19:
                queue.grow(threshold=20, most=6, order=False)
        found = sizes(queue)
        assert len(found) == 6 and sum(found) == 200 and min(found) >= 2
        assert queue.queues()[-1].counts().meta["max_jobs"] == "1000"


def test_CSH_02_two_clients_agree(server: EmbeddedRedis, queue_name: str) -> None:
    """C-28: also one that comes later, and finds what is there."""
    with (
        ShardedQueue(queue_name, server.url, shards=2) as first,
        ShardedQueue(queue_name, server.url, shards=5) as second,
    ):
        for _ in range(20):
            first.send("t")
        assert second.table().version == 1 and len(second.queues()) == 2
        assert first.open(order=False) == 2
        for _ in range(20):
            second.send("t")
        assert [one.name for one in first.queues()] == [one.name for one in second.queues()]
        assert first.counts().ready == 40


def test_CSH_04_there_are_no_more_queues_than_the_most(
    server: EmbeddedRedis, queue_name: str
) -> None:
    """C-28: three that look after each job."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        others = [queue, ShardedQueue(queue_name, server.url), ShardedQueue(queue_name, server.url)]
        opened = []
        for number in range(100):
            others[number % 3].send("t")
            opened += [one.grow(threshold=1, most=3, order=False) for one in others]
        assert [one for one in opened if one is not None] == [1, 2]
        for one in others[1:]:
            one.close()
        for wrong in ({"threshold": 0, "most": 1}, {"threshold": 1, "most": True}):
            with pytest.raises(ConfigError):
                queue.grow(**wrong)
