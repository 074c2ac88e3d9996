"""The connection for the calls of one queue, wherever that is: `connection_for`.

    connection = connection_for(client, keys, timeout)

For one server (and behind Sentinels) this is `Connection(client, timeout)`: nothing looks anything
up. For a client of a whole Redis Cluster it is a `RoutedConnection`, which does all that a
`Connection` does, and leads to the node that has the queue's slot:

- The node is looked up when it connects, never while it is connected. `connect` asks nodes for the
  map only where the map does not say, or the node was lost before.
- A call that a node refuses because the slot is another's (MOVED) has not run: that is learned, and
  the call goes there, within `run`, `finish` and `run_then`.
- A call that is refused while the slot moves, or nobody serves it (ASK, TRYAGAIN, CLUSTERDOWN), is
  sent again for 0.2 s (`SlotWait`), and raises `SlotBusy` then: nothing was done, and `Repeats` and
  an outage of a worker try it again.
- A call of another queue (what goes from this one's outbox) goes over a connection of its own, one
  for each node to which there are such calls.
- Who sends commands by themselves (`send` and `read`, as `WakeListener` does) asks `meant` what an
  error reply means: MOVED is learned there, and is a `SlotBusy` too. The connection is closed, and
  the next one leads to the new node.

`address`: the node; `cluster.slots.version`: another number after each change of the map. A command
that blocks on keys (BLPOP) may name keys of one slot only: to listen to queues of several slots
takes one connection for each, even where one node has them.
"""

from __future__ import annotations

import time
from typing import Any, TypeVar

import redis
from redis import exceptions as rx

from rqueue.errors import ServerError, SlotBusy
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.exchange import Exchange
from rqueue.protocol.forwarding import target_away
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import Address, Redirection, SlotWait, redirection, slot_of
from rqueue.transport import stand_in
from rqueue.transport.cluster import Cluster, NodeConnection, cluster_of
from rqueue.transport.connection import Connection
from rqueue.transport.owner_knock import OwnerKnock
from rqueue.transport.redis_client import is_cluster

__all__ = ["RoutedConnection", "connection_for"]

R = TypeVar("R")


def connection_for(
    client: redis.Redis,
    keys: QueueKeys,
    timeout: float | None = 15.0,
    *,
    slot_wait: float = SlotWait.ALL_S,
) -> Connection:
    """The connection for the calls of a queue. timeout: as of `Connection`. slot_wait: seconds that
    a call waits for a slot which moves; 0.0 where the caller has other queues to see to."""
    if stand_in.name_of() or not is_cluster(client):
        return Connection(client, timeout)
    return RoutedConnection(cluster_of(client), slot_of(keys.meta), timeout, slot_wait)


class RoutedConnection(NodeConnection):
    """A connection to the node that has `slot`; see the module."""

    def __init__(
        self,
        cluster: Cluster,
        slot: int,
        timeout: float | None = 15.0,
        slot_wait: float = SlotWait.ALL_S,
    ) -> None:
        self.slot = slot
        self._slot_wait = slot_wait
        self._waits: tuple[Exchange[Any], SlotWait] | None = None
        self._own = ""
        """The key of the last call of its slot: mostly all have the same."""
        self._away: dict[Address, RoutedConnection] = {}
        """For calls of other slots, by the node to which the first of them went."""
        super().__init__(cluster, cluster.place(slot), timeout)

    def twin(self) -> Connection:
        """Another one, made like this; it waits for a slot which moves."""
        return RoutedConnection(self.cluster, self.slot, self._timeout)

    def connect(self) -> None:
        """As `Connection.connect`, to the node that has the slot now."""
        if not self.connected and not stand_in.name_of():
            address = self.cluster.owner(self.slot)
            if address != self.address:
                self.address = address
                self._inner = self._made()
        super().connect()

    def run(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """As `Connection.run`. A call of another queue goes over a connection of its own: what a
        queue sends to others goes the same way as what is its own. Raises TargetAway where that
        queue cannot be reached: it may be on another node."""
        way = self.leading_to(call.key)
        if way is self:
            return super().run(call, queue=queue, consumer=consumer)
        try:
            return way.run(call, queue=queue, consumer=consumer)
        except ServerError as error:
            raise target_away(call, error) from error

    def leading_to(self, key: str) -> RoutedConnection:
        """As `Connection.leading_to`."""
        if key == self._own:
            return self
        slot = slot_of(key)
        if slot == self.slot:
            self._own = key
            return self
        place = self.cluster.place(slot)
        away = self._away.get(place)
        if away is None:
            away = RoutedConnection(self.cluster, slot, self._timeout, self._slot_wait)
            self._away[place] = away
        if slot != away.slot:
            away.slot, away._own = slot, ""
            if away.address != place:
                away.close()
        return away

    def close(self) -> None:
        """As `Connection.close`."""
        super().close()
        for away in self._away.values():
            away.close()

    def suspect(self) -> None:
        """As `Connection.suspect`."""
        if self.connected:
            self.cluster.lost(self.address)
        super().suspect()

    def knock(self, key: str = "") -> OwnerKnock:
        """As `Connection.knock`, at the node that has the slot now. Raises the server errors."""
        return OwnerKnock(self.cluster, slot_of(key) if key else self.slot)

    def refused(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        """As `Connection.refused`: a call that a node refused because of its slot is sent again."""
        found = redirection(error)
        if found is None:
            refusal = super().refused(exchange, error)
            if not self.connected:
                self.cluster.lost(self.address)  # another one may be in charge
            return refusal
        if self._waits is None or self._waits[0] is not exchange:
            self._waits = exchange, SlotWait(self._slot_wait)
        self._learn(found)
        pause = self._waits[1].pause(found)
        if pause is None:
            return self._busy(error, found)
        exchange.elsewhere()
        if pause:
            time.sleep(pause)
        return None

    def meant(self, error: rx.ResponseError) -> Exception:
        """As `Connection.meant`: who has the slot now is learned."""
        found = redirection(error)
        if found is None:
            return super().meant(error)
        self._learn(found)
        return self._busy(error, found)

    def _refused_then(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        found = redirection(error)
        return super()._refused_then(exchange, error) if found is None else self.meant(error)

    def _learn(self, found: Redirection) -> None:
        if found.moved_to is not None:
            self.cluster.learn(found, self.address)
            super().close()

    def _busy(self, error: rx.ResponseError, found: Redirection) -> Exception:
        if found.moved_to is not None:
            said = f"slot {found.slot} of the cluster has moved to {found.moved_to}"
            return SlotBusy(said, url=self.url)
        if isinstance(error, rx.ClusterDownError):
            self.cluster.lost(self.address)  # it may be it that has lost the others
            self.close()
        return super().meant(error)

    def _broken(self, error: Exception, *, sent: bool = True) -> Exception:
        self.cluster.lost(self.address)
        return super()._broken(error, sent=sent)
