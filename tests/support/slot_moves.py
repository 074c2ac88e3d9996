"""Moves a slot of a cluster to another master while clients are at work: key by key, as `redis-cli
--cluster reshard` and every server can, or at once, as Valkey 9 can."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis

from tests.support.patience import PATIENCE, until
from tests.support.redis_cluster import ClusterNode, SmallCluster


class SlotMove:
    """A slot on its way from one master to another, a key at a time."""

    def __init__(self, cluster: SmallCluster, slot: int, target: ClusterNode | None = None) -> None:
        self.cluster = cluster
        self.slot = slot
        self.from_ = cluster.master_of(slot)
        self.to = target or next(n for n in cluster.masters() if n is not self.from_)
        assert self.to is not self.from_, "it is there already"
        self.source, self.target = self.from_.client(), self.to.client()

    def begin(self) -> None:
        self.target.execute_command("CLUSTER", "SETSLOT", self.slot, "IMPORTING", self.from_.id)
        self.source.execute_command("CLUSTER", "SETSLOT", self.slot, "MIGRATING", self.to.id)

    def left(self) -> list[str]:
        """The keys of the slot that have not moved yet, sorted."""
        found = self.source.execute_command("CLUSTER", "GETKEYSINSLOT", self.slot, 10_000)
        return sorted(key.decode() for key in found)

    def one(self, key: str) -> None:
        """Move a key. Raises ResponseError (BUSYKEY) if the target has one of that name."""
        auth = ["AUTH", self.from_.password] if self.from_.password else []
        self.source.execute_command("MIGRATE", "127.0.0.1", self.to.port, key, 0, 5000, *auth)

    def end(self) -> None:
        """Give the slot to the target; the masters that had no part in it learn it too."""
        others = [n for n in self.cluster.masters() if n not in (self.from_, self.to)]
        for node in (self.to, self.from_, *others):
            node.ask("CLUSTER", "SETSLOT", self.slot, "NODE", self.to.id)

    def give_up(self) -> None:
        """Leave keys where they are and the slot with its source, under way no longer."""
        for node in (self.from_, self.to):
            node.ask("CLUSTER", "SETSLOT", self.slot, "STABLE")

    def close(self) -> None:
        self.source.close()
        self.target.close()


@contextmanager
def moving(
    cluster: SmallCluster, slot: int, target: ClusterNode | None = None
) -> Iterator[SlotMove]:
    """A move to be made step by step."""
    move = SlotMove(cluster, slot, target)
    try:
        yield move
    finally:
        move.close()


def move_slot(
    cluster: SmallCluster,
    slot: int,
    target: ClusterNode | None = None,
    *,
    seed: int = 0,
    between: Callable[[], None] = lambda: None,
) -> ClusterNode:
    """Move a slot key by key, in a random order; returns where it is then.

    - `target`: another master, by default the first that does not have it.
    - `between`: called before each key and before the end.
    """
    order = random.Random(seed)
    with moving(cluster, slot, target) as move:
        move.begin()
        while left := move.left():
            order.shuffle(left)
            for key in left:
                between()
                move.one(key)
        between()
        move.end()
        return move.to


def moves_at_once(node: ClusterNode) -> bool:
    """Whether the server moves slots atomically (Valkey 9 and newer)."""
    try:
        node.ask("CLUSTER", "GETSLOTMIGRATIONS")
    except redis.ResponseError:
        return False
    return True


def move_slot_at_once(
    cluster: SmallCluster, slot: int, target: ClusterNode | None = None
) -> ClusterNode:
    """Let the server move a slot atomically, and wait until it has; returns where it is then. See
    `moves_at_once`."""
    source = cluster.master_of(slot)
    to = target or next(node for node in cluster.masters() if node is not source)
    source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to.id)

    def over() -> bool:
        newest = source.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]
        assert newest[b"state"] not in (b"failed", b"cancelled"), newest
        return bool(newest[b"state"] == b"success")

    until(over, f"slot {slot} moved", PATIENCE)
    until(lambda: slot in cluster.slots(to), f"slot {slot} at its new master", PATIENCE)
    return to
