"""All scenarios, a file for each: whatever stands in this folder runs, and is judged."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from tests.soak.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {}
"""By their names."""

for _found in iter_modules(__path__):
    _its: Scenario = import_module(f"{__name__}.{_found.name}").SCENARIO
    SCENARIOS[_its.name] = _its


def choose(names: Sequence[str]) -> list[Scenario]:
    """The scenarios of these names; of none: all. Raises ValueError."""
    for name in names:
        if name not in SCENARIOS:
            raise ValueError(f"there is no scenario {name!r}; there are: {', '.join(SCENARIOS)}")
    return [SCENARIOS[name] for name in names or SCENARIOS]
