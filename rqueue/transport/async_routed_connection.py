"""The connection for the calls of one queue, wherever that is, for asyncio.

`rqueue.transport.routed_connection` is the same for threads, and says what it does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from redis import exceptions as rx

from rqueue.errors import ServerError, SlotBusy
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.exchange import Exchange
from rqueue.protocol.forwarding import target_away
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import Address, Redirection, SlotWait, redirection, slot_of
from rqueue.transport import stand_in
from rqueue.transport.async_cluster import AsyncCluster, AsyncNodeConnection, async_cluster_of
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.redis_client import is_cluster

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["AsyncRoutedConnection", "async_connection_for"]

R = TypeVar("R")


def async_connection_for(
    client: redis.asyncio.Redis, keys: QueueKeys, timeout: float | None = 15.0
) -> AsyncConnection:
    """The connection for the calls of a queue. timeout: as of `AsyncConnection`."""
    if stand_in.name_of() or not is_cluster(client):
        return AsyncConnection(client, timeout)
    return AsyncRoutedConnection(async_cluster_of(client), slot_of(keys.meta), timeout)


class AsyncRoutedConnection(AsyncNodeConnection):
    """A connection to the node that has `slot`."""

    def __init__(self, cluster: AsyncCluster, slot: int, timeout: float | None = 15.0) -> None:
        self.slot = slot
        self._waits: tuple[Exchange[Any], SlotWait] | None = None
        self._own = ""
        """The key of the last call of its slot: mostly all have the same."""
        self._away: dict[Address, AsyncRoutedConnection] = {}
        """For calls of other slots, by the node to which the first of them went."""
        self._away_turn = asyncio.Lock()
        super().__init__(cluster, cluster.place(slot), timeout)

    async def connect(self) -> None:
        """As `AsyncConnection.connect`, to the node that has the slot now."""
        if not self.connected and not stand_in.name_of():
            address = await self.cluster.owner(self.slot)
            if address != self.address:
                self.address = address
                self._inner = self._made()
        await super().connect()

    async def run(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """As `AsyncConnection.run`. A call of another queue goes over a connection of its own.
        Raises TargetAway where that queue cannot be reached: it may be on another node."""
        if call.key != self._own:
            slot = slot_of(call.key)
            if slot != self.slot:
                async with self._away_turn:
                    return await self._run_away(slot, call, queue, consumer)
            self._own = call.key
        return await super().run(call, queue=queue, consumer=consumer)

    async def _run_away(self, slot: int, call: ScriptCall[R], queue: str, consumer: str) -> R:
        place = self.cluster.place(slot)
        away = self._away.get(place)
        if away is None:
            away = self._away[place] = AsyncRoutedConnection(self.cluster, slot, self._timeout)
        if slot != away.slot:
            away.slot, away._own = slot, ""
            if away.address != place:
                await away.close()
        try:
            return await away.run(call, queue=queue, consumer=consumer)
        except ServerError as error:
            raise target_away(call, error) from error

    async def close(self) -> None:
        """As `AsyncConnection.close`."""
        await super().close()
        for away in self._away.values():
            await away.close()

    def abort(self) -> None:
        """As `AsyncConnection.abort`."""
        super().abort()
        for away in self._away.values():
            away.abort()

    async def refused(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        """As `AsyncConnection.refused`: a call that a node refused because of its slot is sent
        again."""
        found = redirection(error)
        if found is None:
            refusal = await super().refused(exchange, error)
            if not self.connected:
                self.cluster.lost(self.address)  # another one may be in charge
            return refusal
        if self._waits is None or self._waits[0] is not exchange:
            self._waits = exchange, SlotWait()
        self._learn(found)
        pause = self._waits[1].pause(found)
        if pause is None:
            return self._busy(error, found)
        exchange.elsewhere()
        if pause:
            await asyncio.sleep(pause)
        return None

    def meant(self, error: rx.ResponseError) -> Exception:
        """As `AsyncConnection.meant`: who has the slot now is learned."""
        found = redirection(error)
        if found is None:
            return super().meant(error)
        self._learn(found)
        return self._busy(error, found)

    async def _refused_then(
        self, exchange: Exchange[Any], error: rx.ResponseError
    ) -> Exception | None:
        if redirection(error) is None:
            return await super()._refused_then(exchange, error)
        return self.meant(error)

    def _learn(self, found: Redirection) -> None:
        if found.moved_to is not None:
            self.cluster.learn(found, self.address)
            super().abort()

    def _busy(self, error: rx.ResponseError, found: Redirection) -> Exception:
        if found.moved_to is not None:
            said = f"slot {found.slot} of the cluster has moved to {found.moved_to}"
            return SlotBusy(said, url=self.url)
        if isinstance(error, rx.ClusterDownError):
            self.cluster.lost(self.address)  # it may be it that has lost the others
            super().abort()
        return super().meant(error)

    async def _broken(self, error: Exception, *, sent: bool = True) -> Exception:
        self.cluster.lost(self.address)
        return await super()._broken(error, sent=sent)
