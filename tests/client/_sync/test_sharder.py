# Generated from tests/client/_async/test_sharder.py (`make generate`): do not edit.
"""One name for several queues."""

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.queue_sharder import QueueSharder


def test_a_queue_is_added_where_one_is_long(queue: Queue) -> None:
    """C-28."""
    queue.at(queue.name + "-dead").configure(priorities=10)
    queue.configure(dead_to=queue.name + "-dead")
    sharder = QueueSharder(queue, threshold=2, most=2, check=0)
    for _ in range(4):
        (sharder.pick()).send("t")
    assert sharder.names() == [queue.name, f"{queue.name}-2"] == sharder.possible
    second = queue.at(sharder.possible[1]).counts()
    assert (second.ready, second.meta["dead_to"]) == (2, queue.name + "-dead")
