"""Which node of a Redis Cluster has which slot, and what its redirections mean. No I/O.

All keys of a queue are in one slot (`rqueue.protocol.keys`), so a queue is where its slot is. A
slot may move while it is used. A node that does not have it says who does (MOVED): that is learned,
and the call is sent there, since it did not run. While a slot moves key by key, a script is refused
on both nodes before it begins (ASK, TRYAGAIN: see `ScriptCall.keys`), and while nobody serves it,
CLUSTERDOWN: that is waited out. Nothing follows an ASK.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from redis import exceptions as rx
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

__all__ = ["Address", "Redirection", "SlotMap", "SlotWait", "redirection", "slot_of"]

SLOTS = REDIS_CLUSTER_HASH_SLOTS


class Address(NamedTuple):
    """Of one node."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@lru_cache(maxsize=4096)
def slot_of(key: str) -> int:
    """The slot of a key: of its hash tag, if it has one."""
    return key_slot(key.encode("utf-8", "surrogateescape"))


class Redirection(NamedTuple):
    """Why a node did not run a command. moved_to: who has the slot now, "" as its host where the
    node means its own; None where it says nothing that is to be learned."""

    slot: int | None = None
    moved_to: Address | None = None


def redirection(error: Exception) -> Redirection | None:
    """What an error reply says of a slot, None if nothing. In redis-py a MovedError is an
    AskError."""
    if isinstance(error, rx.MovedError):
        return Redirection(error.slot_id, Address(error.host, error.port))
    if isinstance(error, rx.AskError):
        return Redirection(error.slot_id)
    if isinstance(error, rx.MasterDownError):  # in redis-py a ClusterDownError
        return None
    return Redirection() if isinstance(error, rx.TryAgainError | rx.ClusterDownError) else None


class SlotMap:
    """The owner of each slot, as far as it is known.

    Threads may read and learn at once: what one of them misses, a node says again. `version` counts
    the changes: who keeps what follows from an owner looks whether it is another number.
    """

    __slots__ = ("_owners", "version")

    def __init__(self) -> None:
        self._owners: list[Address | None] = [None] * SLOTS
        self.version = 0

    def owner(self, slot: int) -> Address | None:
        """Who has this slot; None where that is not known."""
        return self._owners[slot]

    def learn(self, slot: int, owner: Address) -> None:
        """A node said who has a slot (MOVED)."""
        if self._owners[slot] != owner:
            self._owners[slot] = owner
            self.version += 1

    def replace(self, rows: Iterable[Sequence[Any]], asked: Address) -> None:
        """Take the whole map from the answer to CLUSTER SLOTS. asked: the node that answered, which
        stands for hosts that it does not name."""
        owners: list[Address | None] = [None] * SLOTS
        for first, last, primary, *_ in rows:
            owner = _address(primary, asked)
            owners[first : last + 1] = [owner] * (last + 1 - first)
        if owners != self._owners:
            self._owners = owners
            self.version += 1

    def addresses(self) -> list[Address]:
        """All owners."""
        return list(dict.fromkeys(owner for owner in self._owners if owner is not None))


def _address(node: Sequence[Any], asked: Address) -> Address:
    host = node[0].decode() if isinstance(node[0], bytes) else node[0]
    # a node that does not know its own host names none, or '?'
    return Address(asked.host if host in (None, "", "?") else host, int(node[1]))


class SlotWait:
    """How long one call waits for a slot that is being moved, or that nobody serves. most: seconds,
    all in all."""

    FIRST_S, LONGEST_S, ALL_S = 0.005, 0.05, 0.2
    """Seconds: the first pause, which doubles up to the longest; and all of them together."""

    __slots__ = ("_most", "_moved", "_next", "_waited")

    def __init__(self, most: float = ALL_S) -> None:
        self._most = most
        self._next = self.FIRST_S
        self._waited = 0.0
        self._moved = False

    def pause(self, found: Redirection) -> float | None:
        """Seconds until the call is to be sent again; None where that is enough for one call. To
        where a slot has moved it goes at once, the first time: two nodes may disagree for a
        moment."""
        if found.moved_to is not None and not self._moved:
            self._moved = True
            return 0.0
        if self._waited >= self._most:
            return None
        pause = min(self._next, self.LONGEST_S, self._most - self._waited)
        self._next *= 2
        self._waited += pause
        return pause
