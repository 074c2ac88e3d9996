"""A Redis Cluster as one of its nodes sees it: what CLUSTER NODES says. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rqueue.protocol.slots import SLOTS, Address

__all__ = ["ClusterView", "NodeRow", "OpenSlot", "read_view"]


class OpenSlot(NamedTuple):
    """A slot that is being moved. importing: the row's node is where it goes; other: the id of the
    node at the other end."""

    slot: int
    importing: bool
    other: str


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node. flags: `myself`, `master`, `slave`, `fail`, `fail?`, ...; slots: ranges, both ends
    included; open: only of the node that was asked."""

    id: str
    address: Address
    flags: frozenset[str]
    master: str
    linked: bool
    slots: tuple[tuple[int, int], ...]
    open: tuple[OpenSlot, ...]

    @property
    def count(self) -> int:
        """How many slots it serves."""
        return sum(last - first + 1 for first, last in self.slots)

    @property
    def failed(self) -> bool:
        """Whether the nodes agree that it is gone."""
        return "fail" in self.flags


@dataclass(frozen=True, slots=True)
class ClusterView:
    """All nodes, as one of them sees them."""

    rows: tuple[NodeRow, ...]

    @property
    def me(self) -> NodeRow:
        """The node that was asked."""
        return next(row for row in self.rows if "myself" in row.flags)

    @property
    def masters(self) -> list[NodeRow]:
        """Those that serve slots, also where they are gone."""
        return [row for row in self.rows if row.slots]

    def replicas(self, master: NodeRow) -> list[NodeRow]:
        """Those of a master that are there and connected."""
        return [
            row for row in self.rows if row.master == master.id and row.linked and not row.failed
        ]

    def unserved(self) -> list[tuple[int, int]]:
        """Ranges of slots that no node has."""
        taken = sorted(part for row in self.rows for part in row.slots)
        found, start = [], 0
        for first, last in taken:
            if first > start:
                found.append((start, first - 1))
            start = max(start, last + 1)
        if start < SLOTS:
            found.append((start, SLOTS - 1))
        return found

    def address_of(self, id: str) -> str:
        """Where a node is, for messages."""
        return next((str(row.address) for row in self.rows if row.id == id), id[:8])


def read_view(said: str, asked: Address) -> ClusterView:
    """Read the answer to CLUSTER NODES. asked: the node that answered, which may not know its own
    host."""
    rows = []
    for line in said.splitlines():
        id_, place, flags, master, _ping, _pong, _epoch, link, *slots = line.split(" ")
        host, _, port = place.partition("@")[0].partition(",")[0].rpartition(":")
        rows.append(
            NodeRow(
                id_,
                Address(host or asked.host, int(port)),
                frozenset(flags.split(",")),
                "" if master == "-" else master,
                link == "connected",
                tuple(_range(word) for word in slots if not word.startswith("[")),
                tuple(_open(word) for word in slots if word.startswith("[")),
            )
        )
    return ClusterView(tuple(rows))


def _range(word: str) -> tuple[int, int]:
    first, _, last = word.partition("-")
    return int(first), int(last or first)


def _open(word: str) -> OpenSlot:
    """Of `[93->-id]`, which goes to that node, and `[93-<-id]`, which comes from it."""
    slot, way, other = word.strip("[]").split("-", 2)
    return OpenSlot(int(slot), way == "<", other)
