"""A Redis Cluster, for threads: which node has a slot; the nodes are asked where that is not known.

One object serves all connections of a client: what one of them learns, all know. Of many threads
that miss the same node one asks, the others wait for its answer; those whose nodes answer do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from redis import exceptions as rx

from rqueue.errors import ServerError
from rqueue.model.locks import new_lock
from rqueue.protocol.slots import Address
from rqueue.transport import stand_in, vigil
from rqueue.transport.asked_ahead import AskedAhead
from rqueue.transport.cluster_nodes import ASK_S, ClusterNodes
from rqueue.transport.connection import Connection
from rqueue.transport.server_check import check_greeting

__all__ = ["Cluster", "NodeConnection", "cluster_of"]

_KEPT = "_rqueue_cluster"
_making = new_lock()


class NodeConnection(Connection):
    """A connection to one node, made like those of the client of the whole cluster."""

    def __init__(
        self, cluster: Cluster, address: Address, timeout: float | None, *, brief: bool = False
    ) -> None:
        self.cluster = cluster
        self.address = address
        """Of the node that it is, or was, connected to."""
        self._brief = brief
        super().__init__(cluster.client, timeout)

    def _vigil(self) -> Callable[[], vigil.Vigil] | None:
        return None if self._brief else super()._vigil()

    def _origin(self) -> tuple[type[Any], dict[str, Any]]:
        if stand_in.name_of():
            return super()._origin()
        kind, options = self.cluster.origin(self.address)
        if self._brief:
            options["socket_connect_timeout"] = min(
                ASK_S, options.get("socket_connect_timeout") or ASK_S
            )
        return kind, options

    def _check_greeting(self, greeting: Any) -> None:
        check_greeting(greeting, self.url, of_cluster=not stand_in.name_of())

    @property
    def url(self) -> str:
        """The cluster, and where in it the connection leads."""
        return f"{self.cluster.url}, now {self.address}"


class Cluster(ClusterNodes):
    """The nodes that a client of redis-py knows; thread-safe, and safe after a fork."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.client = client
        self._lock = new_lock()

    def owner(self, slot: int) -> Address:
        """The node that has a slot. Asks the nodes where that is not known, or the node was lost.
        Raises the server errors."""
        known = self.trusted(slot)
        return known if known is not None else self.owner_now(slot, self.refresh(self._asked))

    def owners_now(self) -> list[Address]:
        """All nodes that have slots, asked for anew. Raises the server errors where nobody has the
        map."""
        failure = self.refresh(self._asked)
        if failure is not None:
            raise failure
        return self.slots.addresses()

    def in_charge(self, silent: Collection[Address]) -> Collection[Address]:
        """As `rqueue.transport.vigil.InCharge`: the masters, as others than the silent say."""
        for address in silent:
            self.lost(address)
        return self.owners_now()

    def refresh(self, asked: int) -> ServerError | None:
        """Ask for the map, unless that was done since so many were; the error if nobody has one."""
        with self._lock:
            if self._asked != asked:
                return None
            failure = None
            for address in self.candidates():
                found = self.ask(address)
                if found is None:
                    failure = None
                    break
                failure = failure or found
            self._asked += 1
            return failure

    def ask(self, address: Address) -> ServerError | None:
        """Ask this node for the map; the error if it does not give it."""
        connection = NodeConnection(self, address, ASK_S, brief=True)
        try:
            self.took(connection.command("CLUSTER", "SLOTS"), address)
        except rx.ResponseError as error:
            return self.refused_map(error)
        except ServerError as error:
            self.asked_in_vain(address)
            return error
        finally:
            connection.close()
        return None


def cluster_of(client: Any) -> Cluster:
    """The cluster that a client of redis-py knows: one object for all who use that client."""
    if isinstance(client, AskedAhead):
        client = client.client
    kept: Cluster | None = vars(client).get(_KEPT)
    if kept is None:
        with _making:
            kept = vars(client).get(_KEPT)
            if kept is None:
                kept = vars(client).setdefault(_KEPT, Cluster(client))
    return kept


vigil.of_cluster = lambda client: cluster_of(client).in_charge
