"""One name for several queues."""

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.queue_sharder import AsyncQueueSharder


async def test_a_queue_is_added_where_one_is_long(queue: AsyncQueue) -> None:
    """C-28."""
    await queue.at(queue.name + "-dead").configure(priorities=10)
    await queue.configure(dead_to=queue.name + "-dead")
    sharder = AsyncQueueSharder(queue, threshold=2, most=2, check=0)
    for _ in range(4):
        await (await sharder.pick()).send("t")
    assert await sharder.names() == [queue.name, f"{queue.name}-2"] == sharder.possible
    second = await queue.at(sharder.possible[1]).counts()
    assert (second.ready, second.meta["dead_to"]) == (2, queue.name + "-dead")
