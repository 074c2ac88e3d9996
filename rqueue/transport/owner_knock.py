"""A knock at the node of a cluster that has a slot, where it may have to be asked first which one
that is.

Who asks for the map waits for whom he asks, and a node that hangs answers nobody. So all that may
know are knocked at, together, and the first one that answers is asked.
"""

from __future__ import annotations

from time import monotonic

from rqueue.errors import ServerError
from rqueue.protocol.slots import Address
from rqueue.transport.cluster import Cluster
from rqueue.transport.knock import AGAIN_S, Knock

__all__ = ["OwnerKnock"]


class OwnerKnock:
    """See the module, and `rqueue.transport.knock.AnyKnock`."""

    def __init__(self, cluster: Cluster, slot: int) -> None:
        self._cluster = cluster
        self._slot = slot
        self._owner: Address | None = None
        """Who has the slot, as far as that is known."""
        self._door: Knock | None = None
        """Of the owner."""
        self._others: dict[Address, Knock] = {}
        """Nodes that are to be asked who it is."""
        self._failure: ServerError | None = None
        self._again_at = 0.0
        if not self._look_up():
            self._ask()

    def answered(self, within: float = 0.0) -> bool | None:
        """As `AnyKnock.answered`. Raises SlotBusy where nobody has the slot, and what those said
        who were asked, where none of them knew."""
        until = monotonic() + within
        if self._others:
            self._hear(within if self._door is None else 0.0)
        if self._door is None:
            if not self._others and self._failure is not None:
                raise self._failure
            return None if self._others else False
        assert self._owner is not None
        said = self._door.answered(max(0.0, until - monotonic()))
        if said:
            self._cluster.found(self._owner)
        elif said is False or (monotonic() >= self._again_at and not self._others):
            self._cluster.lost(self._owner)  # another one may be in charge
            if said is None:
                self._ask()
        if said is not None:
            self.close()
        return said

    def close(self) -> None:
        """Stop waiting."""
        if self._door is not None:
            self._door.close()
        self._ask_nobody()

    def _look_up(self) -> bool:
        """Knock at the owner, if it is known who that is; whether it is."""
        owner = self._cluster.trusted(self._slot)
        if owner is not None and owner != self._owner:
            if self._door is not None:
                self._door.close()
            self._owner, self._door = owner, _knock_at(owner)
            self._again_at = monotonic() + AGAIN_S
        return owner is not None

    def _ask(self) -> None:
        self._again_at = monotonic() + AGAIN_S
        self._others = {one: _knock_at(one) for one in self._cluster.candidates()}

    def _ask_nobody(self) -> None:
        while self._others:
            self._others.popitem()[1].close()

    def _hear(self, within: float) -> None:
        """Ask the first that answers. Raises SlotBusy where nobody has the slot."""
        if self._look_up():  # another one has asked
            self._ask_nobody()
            return
        share = within / len(self._others)
        for address, knock in list(self._others.items()):
            said = knock.answered(share)
            if said is None:
                continue
            del self._others[address]
            if not said:
                self._cluster.asked_in_vain(address)
            elif (failure := self._cluster.ask(address)) is not None:
                self._failure = self._failure or failure
            else:
                self._ask_nobody()
                self._cluster.owner_now(self._slot, None)
                self._look_up()
                return


def _knock_at(address: Address) -> Knock:
    return Knock(lambda: address, lambda _address: None)
