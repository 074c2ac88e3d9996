"""A sharded queue whose shards open and close: groups keep their order."""

from __future__ import annotations

from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from tests.soak.cases import at_once, one_after_another
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

GROUPS = 4
SHARDS = 2
MOST = 4


def enqueue(publisher: Publisher) -> None:
    """A job of a group; now and then a shard opens, or is drained."""
    group = f"{publisher.name}/{publisher.random.randrange(GROUPS)}"
    publisher.send("shards", Options(group=group), group=group)
    if publisher.random.random() < 0.04:
        with ShardedQueue("shards", publisher.url) as queue:
            try:
                there = [shard.number for shard in queue.table().open]
                if len(there) < MOST:
                    queue.open()
                else:
                    queue.drain(publisher.random.choice(there))
            except RQueueError:
                return  # not now


SCENARIO = Scenario(
    "shards",
    {"shards": {}},
    enqueue,
    {
        "two of a group at once": at_once("shards", 1, lambda job: job.facts["group"]),
        "out of order": one_after_another("shards", lambda job: job.facts["group"]),
    },
    rate=3,
    served="shards",
)
