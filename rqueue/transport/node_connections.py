"""The client's script calls in a Redis Cluster: one connection per thread and node.

A thread that enqueues into a thousand queues has as many connections as there are nodes. One that
has followed its queue to another node is that node's from then on.
`rqueue.transport.async_node_connections` is the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import redis
from redis import exceptions as rx

from rqueue.model.confirmation import Confirmation
from rqueue.protocol.commands.server import server_info
from rqueue.protocol.slots import Address, slot_of
from rqueue.transport import stand_in
from rqueue.transport.cluster import Cluster, cluster_of
from rqueue.transport.redis_client import is_cluster
from rqueue.transport.routed_connection import RoutedConnection
from rqueue.transport.server_check import ServerFacts, read_facts
from rqueue.transport.thread_connections import ThreadConnections

__all__ = ["NodeConnections", "connections_for"]


def connections_for(client: redis.Redis, timeout: float | None) -> ThreadConnections:
    """The connections for the calls of all queues that a client leads to. timeout: as of
    `ThreadConnections`."""
    if stand_in.name_of() or not is_cluster(client):
        return ThreadConnections(client, timeout)
    return NodeConnections(client, timeout)


class NodeConnections(ThreadConnections):
    """Connections to the nodes of the cluster that `client` is a client of."""

    def __init__(self, client: redis.Redis, timeout: float | None) -> None:
        super().__init__(client, timeout)
        self._cluster: Cluster = cluster_of(client)
        self._confirmable_at: dict[Address, set[Confirmation]] = {}

    def confirmable(self, key: str) -> set[Confirmation]:
        """As `ThreadConnections.confirmable`, of the queue's node."""
        return self._confirmable_at.setdefault(self._cluster.place(slot_of(key)), set())

    def facts(self, key: str) -> ServerFacts:
        """As `ThreadConnections.facts`, of the queue's node. One that is a replica now is asked who
        has taken its place."""
        connection = self._lent(key)
        facts = self._facts(connection)
        if facts.replica is not None:
            self._cluster.lost(connection.address)
            connection.close()
            facts = self._facts(connection)
        self._keep(connection)
        return facts

    @staticmethod
    def _facts(connection: RoutedConnection) -> ServerFacts:
        try:
            said = connection.command("INFO")
        except rx.ResponseError as error:
            raise connection.meant(error) from error
        # that the node is one of many is how it should be
        return replace(read_facts(server_info().read([said]), connection.url), mode="standalone")

    def server_of(self, key: str) -> Hashable:
        """As `ThreadConnections.server_of`: the queue's node, as far as that is known."""
        return id(self), self._cluster.place(slot_of(key))

    def _lent(self, key: str) -> RoutedConnection:
        slot = slot_of(key)
        place = self._cluster.place(slot)
        free: list[RoutedConnection] = self._free
        for at in range(len(free) - 1, -1, -1):
            if free[at].address == place:
                connection = free.pop(at)
                connection.slot = slot
                return connection
        return self._made(RoutedConnection(self._cluster, slot, self.patience))
