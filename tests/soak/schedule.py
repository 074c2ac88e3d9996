"""Which fault comes when: drawn before the soak begins, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.soak.faults.scene import LANES, Fault, Lane

RATES: dict[Lane, float] = {
    "workers": 0.3,
    "pools": 0.1,
    "server": 0.3,
    "network": 0.6,
    "clients": 0.5,
    "jobs": 0.5,
}
"""Faults a second of each lane, in the mean."""


class Planned(NamedTuple):
    """A fault that is to come. `at`: seconds after the beginning; `seed`: of all that it draws."""

    lane: Lane
    number: int
    at: float
    fault: Fault
    seed: str


def plan(
    seed: int, seconds: float, faults: Sequence[Fault], pressure: float = 1.0
) -> dict[Lane, list[Planned]]:
    """The faults of each lane, in order. pressure: a factor of how often they come."""
    planned: dict[Lane, list[Planned]] = {}
    for lane in LANES:
        kinds = [fault for fault in faults if fault.lane == lane]
        planned[lane] = []
        if not kinds:
            continue
        draw = random.Random(f"{seed}/{lane}")
        at = 0.0
        while (at := at + draw.expovariate(RATES[lane] * pressure)) < seconds:
            number = len(planned[lane]) + 1
            (fault,) = draw.choices(kinds, [kind.weight for kind in kinds])
            planned[lane].append(Planned(lane, number, at, fault, f"{seed}/{lane}/{number}"))
    return planned
