"""What every policy's module declares."""

from __future__ import annotations

from typing import NamedTuple


class Policy(NamedTuple):
    """One policy of queues, the Python half of `lua/policies/<name>.lua`.

    revision: grows when what it stores is stored otherwise. options: its fields of `meta` that
    people set -> the least and the greatest value. excludes: policies that cannot be in a kind with
    it. names: its fields of `meta` that are names of queues. requires: policies that a kind
    with it has too.
    """

    name: str
    revision: int = 1
    options: tuple[tuple[str, int, int], ...] = ()
    excludes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The policy in a queue's stamp."""
        return self.name if self.revision == 1 else f"{self.name}.{self.revision}"
