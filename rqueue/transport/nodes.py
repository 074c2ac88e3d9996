"""The nodes behind a client, each asked by itself: what is to be said of all of them must not be
said of some.

A queue is on one node, and calls find it there by its keys. What belongs to no queue (which queues
there are, how a server is set up) has to be asked of every node that serves slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import redis
from redis import exceptions as rx

from rqueue import errors
from rqueue.protocol.cluster_view import ClusterView, read_view
from rqueue.protocol.commands.server import cluster_nodes
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import Address, slot_of
from rqueue.transport.cluster import Cluster, NodeConnection, cluster_of
from rqueue.transport.cluster_nodes import ASK_S
from rqueue.transport.redis_client import is_cluster, url_of

__all__ = ["Node", "Nodes", "missing_error", "node_of", "nodes_of"]


class Node(NamedTuple):
    """A server that keeps queues. address: host and port, "" where there is one server alone."""

    address: str
    client: redis.Redis


class Nodes:
    """All of them. `views`: of a cluster, how each that answers sees it, by its address; empty for
    one server. `missing`: those that serve slots and cannot be used, by address, and why."""

    def __init__(
        self,
        nodes: list[Node],
        views: Mapping[str, ClusterView],
        missing: dict[str, errors.ServerError],
    ) -> None:
        self.nodes = nodes
        self.views = views
        self.missing = missing

    def layout(self) -> object:
        """Who says to serve which slots, and what is being moved: the same twice where nothing
        moved in between."""
        return {
            address: (view.me.slots, view.me.open) for address, view in self.views.items()
        }, frozenset(self.missing)

    @property
    def moving(self) -> bool:
        """Whether a slot is on its way."""
        return any(view.me.open for view in self.views.values())


@contextmanager
def nodes_of(client: redis.Redis) -> Iterator[Nodes]:
    """Every node that serves slots now, asked anew; one server is one node. Raises the server
    errors where nobody knows the cluster."""
    if not is_cluster(client):
        yield Nodes([Node("", client)], {}, {})
        return
    cluster = cluster_of(client)
    opened: list[redis.Redis] = []

    def open_node(address: Address) -> redis.Redis:
        kind, options = cluster.origin(address)
        pool = redis.ConnectionPool(connection_class=kind, **options)
        opened.append(redis.Redis(connection_pool=pool))
        return opened[-1]

    nodes: list[Node] = []
    views: dict[str, ClusterView] = {}
    missing: dict[str, errors.ServerError] = {}
    try:
        for address in sorted(cluster.owners_now()):
            try:
                views[str(address)] = _view(cluster, address)
            except errors.ServerError as error:
                missing[str(address)] = error
            else:
                nodes.append(Node(str(address), open_node(address)))
        yield Nodes(nodes, views, missing)
    finally:
        for one in opened:
            one.close()
            one.connection_pool.disconnect()


def _view(cluster: Cluster, address: Address) -> ClusterView:
    """How a node sees the cluster. One that hangs is not waited for as a command is. Raises the
    server errors."""
    asking, call = NodeConnection(cluster, address, ASK_S, brief=True), cluster_nodes()
    try:
        reply = asking.command(*call.commands[0])
    except rx.ResponseError as error:
        raise asking.meant(error) from error
    finally:
        asking.close()
    return read_view(call.read([reply]), address)


def node_of(client: redis.Redis, keys: QueueKeys) -> str:
    """The address of a queue's node, asked anew; "" where there is one server alone. Raises the
    server errors."""
    if not is_cluster(client):
        return ""
    cluster = cluster_of(client)
    cluster.owners_now()
    return str(cluster.owner(slot_of(keys.meta)))


def missing_error(
    client: redis.Redis, missing: Mapping[str, errors.ServerError]
) -> errors.ConnectionLost:
    """The error of what is to be said of all nodes, and cannot be."""
    address, why = next(iter(missing.items()))
    others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    return errors.ConnectionLost(
        f"node {address}{others} of the cluster cannot be asked, so that its queues are not known:"
        f" {why}",
        url=url_of(client),
    )
