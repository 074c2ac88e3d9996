"""Kinds of queues to look at all sources with: a file may be part of a script only where two
policies meet."""

from __future__ import annotations

from functools import cache
from typing import Final

from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind
from rqueue.protocol.scripts import SCRIPTS


def _go_together(one: str, other: str) -> bool:
    """Whether a queue may have both policies, with what these bring along."""
    try:
        Kind.of([one, other])
    except ExcludedPolicies:
        return False
    return True


def _greatest() -> list[Kind]:
    """Those to which no policy can be added. Policies exclude each other by pairs, so these are the
    greatest sets of which any two go together: found as Bron and Kerbosch do, since of the
    smaller ones there are tens of thousands."""
    company = {
        one: {other for other in POLICIES if other != one and _go_together(one, other)}
        for one in POLICIES
    }
    found: list[Kind] = []

    def grow(chosen: list[str], may: set[str], seen: set[str]) -> None:
        """chosen: go together; may: go with all of these; seen: as well, and were looked at."""
        if not may | seen:
            found.append(Kind.of(chosen))
            return
        friend = max(sorted(may | seen), key=lambda name: len(company[name] & may))
        for name in sorted(may - company[friend]):
            grow([*chosen, name], may & company[name], seen & company[name])
            may, seen = may - {name}, seen | {name}

    grow([], {*POLICIES}, set())
    return sorted(found)


GREATEST: Final = tuple(_greatest())
"""The kinds to which no policy can be added: their scripts are the longest."""

KINDS: Final = (
    PLAIN,
    *(Kind.of([name]) for name in POLICIES if name not in PLAIN.policies),
    *GREATEST,
)
"""The plain one, that of each policy, and the greatest: any two policies that go together are in
one of these."""


@cache
def asked_by() -> dict[str, list[str]]:
    """Hook -> the scripts that ask it in some kind."""
    found: dict[str, list[str]] = {}
    for name in SCRIPTS.names():
        asks: set[str] = set()
        kinds = KINDS if SCRIPTS.script(name).composed else (PLAIN,)
        for kind in kinds:
            asks |= {*SCRIPTS.script(name, kind).asks}
        for hook in asks:
            found.setdefault(hook, []).append(name)
    return found


def asking(hook: str) -> list[str]:
    """The scripts that ask this hook in some kind."""
    return asked_by().get(hook, [])
