"""The asyncio client's script calls in a Redis Cluster: connections per node, which tasks share.

The calls to each node have their own turns: those that wait for a node that is gone keep nobody
from the others. `rqueue.transport.node_connections` is the same for threads.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rqueue.model.confirmation import Confirmation
from rqueue.protocol.slots import Address, slot_of
from rqueue.transport import stand_in
from rqueue.transport.async_cluster import AsyncCluster, async_cluster_of
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.async_routed_connection import AsyncRoutedConnection
from rqueue.transport.redis_client import is_cluster
from rqueue.transport.server_check import ServerFacts
from rqueue.transport.task_connections import CALLS_MAX, FREE_MAX, TaskConnections

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["AsyncNodeConnections", "async_connections_for"]


def async_connections_for(client: redis.asyncio.Redis, timeout: float | None) -> TaskConnections:
    """The connections for the calls of all queues that a client leads to. timeout: as of
    `TaskConnections`."""
    if stand_in.name_of() or not is_cluster(client):
        return TaskConnections(client, timeout)
    return AsyncNodeConnections(client, timeout)


class AsyncNodeConnections(TaskConnections):
    """Connections to the nodes of the cluster that `client` is a client of."""

    def __init__(self, client: redis.asyncio.Redis, timeout: float | None) -> None:
        super().__init__(client, timeout)
        self._cluster: AsyncCluster = async_cluster_of(client)
        self._free_at: defaultdict[Address, list[AsyncRoutedConnection]] = defaultdict(list)
        self._confirmable_at: defaultdict[Address, set[Confirmation]] = defaultdict(set)
        self._turns_at: defaultdict[Address, asyncio.Semaphore] = defaultdict(
            partial(asyncio.Semaphore, CALLS_MAX)
        )

    def confirmable(self, key: str) -> set[Confirmation]:
        """As `TaskConnections.confirmable`, of the queue's node."""
        return self._confirmable_at[self._place(key)]

    async def facts(self, key: str) -> ServerFacts:
        """As `TaskConnections.facts`, of the queue's node. One that is a replica now is asked who
        has taken its place."""
        self._home.enter()
        closes = self._closes
        connection = self._take(key)
        try:
            facts = await self._facts(connection)
            if facts.replica is not None:
                self._cluster.lost(connection.address)
                await connection.close()
                facts = await self._facts(connection)
            return facts
        finally:
            self._return(connection, closes)

    @staticmethod
    async def _facts(connection: AsyncConnection) -> ServerFacts:
        # that the node is one of many is how it should be
        return replace(await TaskConnections._facts(connection), mode="standalone")

    def server_of(self, key: str) -> Hashable:
        """As `TaskConnections.server_of`: the queue's node, as far as that is known."""
        return id(self), self._place(key)

    def _place(self, key: str) -> Address:
        return self._cluster.place(slot_of(key))

    def _turns_of(self, key: str) -> asyncio.Semaphore:
        return self._turns_at[self._place(key)]

    def _take(self, key: str) -> AsyncRoutedConnection:
        free, slot = self._free_at[self._place(key)], slot_of(key)
        connection = (
            free.pop() if free else AsyncRoutedConnection(self._cluster, slot, self.patience)
        )
        connection.slot = slot
        return connection

    def _return(self, connection: Any, closes: int) -> None:
        # one that has followed its queue to another node is that node's from now on
        free = self._free_at[connection.address]
        if len(free) < FREE_MAX and closes == self._closes:
            free.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """As `TaskConnections.close`."""
        self._closes += 1
        free: list[AsyncConnection] = [one for some in self._free_at.values() for one in some]
        self._free_at.clear()
        await self._close_all(free)
        self._turns_at.clear()
