"""An asyncio queue that is closed while calls are under way leaves no connection open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.transport.async_node_connections import AsyncNodeConnections
from rqueue.transport.task_connections import CALLS_MAX
from tests.support.redis_cluster import SmallCluster

MANY = 10 * CALLS_MAX


@pytest.fixture(params=["server", "cluster"])
def places(request: pytest.FixtureRequest, queue_name: str) -> Iterator[tuple[str, list[str]]]:
    """A URL, and the names of queues there."""
    if request.param == "server":
        server: EmbeddedRedis = request.getfixturevalue("server")
        yield server.url, [queue_name]
        return
    cluster: SmallCluster = request.getfixturevalue("redis_cluster")
    yield cluster.cluster_url, cluster.queues_everywhere(queue_name)


def kept(queue: AsyncQueue) -> int:
    """Connections that are open though no call uses them."""
    transport = queue._transport
    if isinstance(transport, AsyncNodeConnections):
        return sum(map(len, transport._free_at.values()))
    return len(transport._free)


def test_calls_whose_turn_comes_after_the_end_keep_no_connection(
    places: tuple[str, list[str]],
) -> None:
    """As where one of a gather's calls fails, and its queue is closed while the others go on."""
    url, names = places

    async def main() -> None:
        queue = AsyncQueue(names[0], url)
        await queue.send("t")
        calls = [
            asyncio.create_task(queue.at(names[number % len(names)]).send("t"))
            for number in range(MANY)
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        await queue.close()
        assert not all(call.done() for call in calls), "some wait for their turn"
        assert all(handle.created for handle in await asyncio.gather(*calls))
        assert kept(queue) == 0
        # who begins anew keeps one again, until the end
        await queue.send("t")
        assert kept(queue) == 1
        await queue.close()
        assert kept(queue) == 0

    asyncio.run(main())


def test_a_loop_that_is_busy_keeps_none_open(server: EmbeddedRedis, queue_name: str) -> None:
    """Where the end of one connection is not heard of in time, the others end too."""

    async def busy() -> None:
        until = monotonic() + 0.2
        while monotonic() < until:
            pass

    async def main() -> None:
        queue = AsyncQueue(queue_name, server.url)
        await asyncio.gather(queue.send("t"), queue.send("t"))
        connections = [*queue._transport._free]
        assert len(connections) == 2
        for connection in connections:
            connection._inner.socket_connect_timeout = 0.05
        await asyncio.gather(queue.close(), busy())
        assert not any(connection.connected for connection in connections)

    asyncio.run(main())
