"""What is known of a Redis Cluster's nodes, and which of them are to be asked. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from redis import exceptions as rx

from rqueue.errors import ServerError, SlotBusy, WrongServer
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.slots import Address, Redirection, SlotMap
from rqueue.transport.cluster_client import NodeOptions, node_options

__all__ = ["ASK_MOST", "ASK_S", "ClusterNodes"]

ASK_S = 2.0
"""Seconds that one node may take to be reached, and to answer, before the next one is asked."""

ASK_MOST = 5
"""Nodes that are asked for the map at the most, until one has it."""


class ClusterNodes:
    """The nodes of the cluster that `client` is a client of. `slots`: the map as it is known."""

    def __init__(self, client: Any) -> None:
        made: NodeOptions = node_options(client)
        self._made = made
        self._remap: Callable[[str, int], tuple[str, int]] | None = None
        if not hasattr(client, "nodes_of_url") and client.nodes_manager.address_remap:
            self._remap = client.nodes_manager.remap_host_port
        self._doubtful: set[Address] = set()
        self._silent: set[Address] = set()  # asked in vain, and not heard of since
        self._asked = 0  # how often the map was asked for
        self.slots = SlotMap()
        self.url = made.url
        """For messages, without credentials."""

    @property
    def seed(self) -> Address:
        """The first node that was named."""
        return self._made.seeds[0]

    def origin(self, address: Address) -> tuple[type[Any], dict[str, Any]]:
        """Class and arguments of a connection of redis-py to a node."""
        host, port = address
        return self._made.kind, {**self._made.options, "host": host, "port": port}

    def lost(self, address: Address) -> None:
        """A node cannot be used: before it is tried again, the map is asked for."""
        self._doubtful.add(address)

    def found(self, address: Address) -> None:
        """A node answers: it can be used, as far as is known."""
        self._doubtful.discard(address)

    def learn(self, found: Redirection, asked: Address) -> None:
        """Take over who has a slot now, from an answer of the node `asked`."""
        if found.slot is not None and found.moved_to is not None:
            host, port = found.moved_to
            owner = Address(*self._remapped(host or asked.host, port))
            self._doubtful.discard(owner)
            self.slots.learn(found.slot, owner)

    def place(self, slot: int) -> Address:
        """Where the calls of a slot are to go first: its owner, as far as that is known."""
        return self.slots.owner(slot) or self.seed

    def trusted(self, slot: int) -> Address | None:
        """Who has a slot, if that is known and not in doubt."""
        owner = self.slots.owner(slot)
        return None if owner in self._doubtful else owner

    def candidates(self) -> list[Address]:
        """Whom to ask for the map, one after the other: those that were lost at last."""
        known = {*self._made.seeds, *self.slots.addresses()}
        bad = self._doubtful | self._silent
        well, ill = list(known - bad), list(known & bad)
        random.shuffle(well)  # clients do not all ask the same one
        random.shuffle(ill)
        return (well + ill)[:ASK_MOST]

    def asked_in_vain(self, address: Address) -> None:
        """A node has not answered: it is asked again when no other one is left."""
        self._silent.add(address)

    def took(self, rows: Sequence[Any], asked: Address) -> None:
        """A node has answered CLUSTER SLOTS."""
        self._silent.discard(asked)
        if self._remap is not None:
            rows = [[first, last, self._remap_node(node, asked)] for first, last, node, *_ in rows]
        self.slots.replace(rows, asked)
        self._doubtful.clear()

    def _remap_node(self, node: Sequence[Any], asked: Address) -> tuple[str, int]:
        host = node[0].decode() if isinstance(node[0], bytes) else node[0]
        return self._remapped(host or asked.host, int(node[1]))

    def _remapped(self, host: str, port: int) -> tuple[str, int]:
        return (host, port) if self._remap is None else self._remap(host, port)

    def owner_now(self, slot: int, failure: ServerError | None) -> Address:
        """Who has a slot, after the map was asked for. Raises `failure`, with which nobody has
        answered, where nothing is known."""
        owner = self.slots.owner(slot)
        if owner is not None:
            return owner
        raise failure or SlotBusy(f"no node of the cluster serves slot {slot}", url=self.url)

    def refused_map(self, error: rx.ResponseError) -> ServerError:
        """What it means that a node has no map."""
        said = translate(error, url=self.url)
        return said if isinstance(said, ServerError) else WrongServer(str(said), url=self.url)
