"""Every kind of fault, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.soak.faults.jobs import JOB_FAULTS
from tests.soak.faults.network import NETWORK_FAULTS
from tests.soak.faults.processes import CLIENT_FAULTS, POOL_FAULTS, WORKER_FAULTS
from tests.soak.faults.scene import Fault
from tests.soak.faults.server import SERVER_FAULTS

CATALOGUE: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        *WORKER_FAULTS,
        *POOL_FAULTS,
        *SERVER_FAULTS,
        *NETWORK_FAULTS,
        *CLIENT_FAULTS,
        *JOB_FAULTS,
    )
}


def select(wanted: Sequence[str]) -> list[Fault]:
    """The faults of these names, each as `name` or `name=weight`; a name that ends in `-` stands
    for all that begin so; nothing: all. Raises ValueError."""
    if not wanted:
        return list(CATALOGUE.values())
    chosen = []
    for word in wanted:
        name, _, weight = word.partition("=")
        found = [
            fault
            for fault in CATALOGUE.values()
            if fault.name == name or (name.endswith("-") and fault.name.startswith(name))
        ]
        if not found:
            raise ValueError(f"there is no fault {name!r}; there are: {', '.join(CATALOGUE)}")
        try:
            chosen += [replace(f, weight=float(weight or f.weight)) for f in found]
        except ValueError:
            raise ValueError(f"{word!r}: {weight!r} is no weight") from None
    return chosen
