"""The client's script calls in a Redis Cluster: one connection per thread and node.

A thread that enqueues into a thousand queues has as many connections as there are nodes. One that
has followed its queue to another node is that node's from then on.
`rqueue.transport.async_node_connections` is the same for asyncio.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import redis
from redis import exceptions as rx

from rqueue.model.confirmation import Confirmation
from rqueue.protocol.commands.server import server_info
from rqueue.protocol.slots import Address, slot_of
from rqueue.transport import stand_in
from rqueue.transport.cluster import Cluster, cluster_of
from rqueue.transport.connection import Connection
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
        connection = self._routed(key)
        facts = self._facts(connection)
        if facts.replica is not None:
            self._cluster.lost(connection.address)
            connection.close()
            facts = self._facts(connection)
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

    def _nodes(self) -> dict[Address, RoutedConnection]:
        """This thread's connections."""
        mine = self._mine
        if getattr(mine, "pid", None) != os.getpid():
            mine.nodes = {}  # a forked child must not write into its parent's connections
            mine.pid = os.getpid()
        nodes: dict[Address, RoutedConnection] = mine.nodes
        return nodes

    def _connection(self, key: str) -> Connection:
        return self._routed(key)

    def _routed(self, key: str) -> RoutedConnection:
        nodes, slot = self._nodes(), slot_of(key)
        place = self._cluster.place(slot)
        connection = nodes.get(place)
        if connection is None or connection.address != place:
            connection = self._sorted(nodes).get(place)
        if connection is None:
            connection = nodes[place] = RoutedConnection(self._cluster, slot, self.patience)
            self._all.add(connection)
        connection.slot = slot
        return connection

    def _sorted(self, nodes: dict[Address, RoutedConnection]) -> dict[Address, RoutedConnection]:
        """Put each connection where it leads, after some have followed their queues."""
        for place, connection in list(nodes.items()):
            if connection.address != place:
                del nodes[place]
                self._keep(connection)
        return nodes

    def _lent(self, key: str) -> Connection:
        connection = self._routed(key)
        nodes = self._nodes()
        nodes.pop(connection.address, None)
        return connection

    def _keep(self, connection: Any) -> None:
        nodes = self._nodes()
        if (other := nodes.get(connection.address)) is not None and other is not connection:
            other.close()
        nodes[connection.address] = connection
