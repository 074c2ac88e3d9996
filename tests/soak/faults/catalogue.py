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


def select(wanted: Sequence[str], without: Sequence[str] = ()) -> list[Fault]:
    """The faults of these names, each as `name` or `name=weight`; a name that ends in `-` stands
    for all that begin so; nothing: all. without: names to leave out. Raises ValueError."""
    spared = {fault.name for name in without for fault in _called(name)}
    chosen = []
    for word in wanted or CATALOGUE:
        name, _, weight = word.partition("=")
        for fault in _called(name):
            try:
                chosen.append(replace(fault, weight=float(weight or fault.weight)))
            except ValueError:
                raise ValueError(f"{word!r}: {weight!r} is no weight") from None
    return [fault for fault in chosen if fault.name not in spared]


def _called(name: str) -> list[Fault]:
    found = [
        fault
        for fault in CATALOGUE.values()
        if fault.name == name or (name.endswith("-") and fault.name.startswith(name))
    ]
    if not found:
        raise ValueError(f"there is no fault {name!r}; there are: {', '.join(CATALOGUE)}")
    return found
