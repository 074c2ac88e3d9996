"""Which fault comes when: drawn before the soak begins, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.soak.faults.scene import TRACKS, Fault, Track

RATES: dict[Track, float] = {
    "workers": 0.3,
    "pools": 0.15,
    "server": 0.3,
    "network": 0.6,
    "clients": 0.5,
    "jobs": 0.5,
}
"""Faults a second of each track, in the mean."""


class Planned(NamedTuple):
    """A fault that is to come. `at`: seconds after the beginning; `seed`: of all that it draws."""

    track: Track
    number: int
    at: float
    fault: Fault
    seed: str


def plan(
    seed: int, seconds: float, faults: Sequence[Fault], pressure: float = 1.0
) -> dict[Track, list[Planned]]:
    """The faults of each track, in order. pressure: a factor of how often they come."""
    planned: dict[Track, list[Planned]] = {}
    for track in TRACKS:
        kinds = [fault for fault in faults if fault.track == track]
        planned[track] = []
        if not kinds:
            continue
        draw = random.Random(f"{seed}/{track}")
        at = 0.0
        while (at := at + draw.expovariate(RATES[track] * pressure)) < seconds:
            number = len(planned[track]) + 1
            (fault,) = draw.choices(kinds, [kind.weight for kind in kinds])
            planned[track].append(Planned(track, number, at, fault, f"{seed}/{track}/{number}"))
    return planned
