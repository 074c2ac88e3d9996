"""A Redis Cluster, for asyncio: which node has a slot; the nodes are asked where that is not known.

`rqueue.transport.cluster` is the same for threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from redis import exceptions as rx

from rqueue.errors import ServerError
from rqueue.protocol.slots import Address
from rqueue.transport import stand_in
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.async_vigil import AsyncVigil
from rqueue.transport.cluster_nodes import ASK_S, ClusterNodes
from rqueue.transport.server_check import check_greeting

__all__ = ["AsyncCluster", "AsyncNodeConnection", "async_cluster_of"]

_KEPT = "_rqueue_cluster"


class AsyncNodeConnection(AsyncConnection):
    """A connection to one node, made like those of the client of the whole cluster."""

    def __init__(
        self, cluster: AsyncCluster, address: Address, timeout: float | None, *, brief: bool = False
    ) -> None:
        self.cluster = cluster
        self.address = address
        """Of the node that it is, or was, connected to."""
        self._brief = brief
        super().__init__(cluster.client, timeout)

    def _vigil(self) -> Callable[[], AsyncVigil] | None:
        return None if self._brief or stand_in.name_of() else self.cluster.vigil

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


class AsyncCluster(ClusterNodes):
    """The nodes that a client of redis-py knows; of one event loop."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.client = client
        self._turn = asyncio.Lock()
        self._vigil: AsyncVigil | None = None

    async def owner(self, slot: int) -> Address:
        """The node that has a slot. Asks the nodes where that is not known, or the node was lost.
        Raises the server errors."""
        known = self.trusted(slot)
        return known if known is not None else self.owner_now(slot, await self.refresh(self._asked))

    def vigil(self) -> AsyncVigil:
        """Who is asked when a node gives no answer."""
        if self._vigil is None:
            self._vigil = AsyncVigil(self.in_charge)
        return self._vigil

    async def in_charge(self, silent: Collection[Address]) -> Collection[Address]:
        """As `rqueue.transport.vigil.InCharge`: the masters, as others than the silent say."""
        for address in silent:
            self.lost(address)
        failure = await self.refresh(self._asked)
        if failure is not None:
            raise failure
        return self.slots.addresses()

    async def refresh(self, asked: int) -> ServerError | None:
        """Ask for the map, unless that was done since so many were; the error if nobody has one."""
        async with self._turn:
            if self._asked != asked:
                return None
            failure = None
            for address in self.candidates():
                connection = AsyncNodeConnection(self, address, ASK_S, brief=True)
                try:
                    self.took(await connection.command("CLUSTER", "SLOTS"), address)
                    failure = None
                    break
                except rx.ResponseError as error:
                    failure = failure or self.refused_map(error)
                except ServerError as error:
                    failure = failure or error
                finally:
                    await connection.close()
            self._asked += 1
            return failure


def async_cluster_of(client: Any) -> AsyncCluster:
    """The cluster that a client of redis-py knows: one object for all who use that client."""
    kept: AsyncCluster | None = vars(client).get(_KEPT)
    if kept is None:
        kept = vars(client)[_KEPT] = AsyncCluster(client)
    return kept
