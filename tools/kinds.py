"""Kinds of queues to look at all sources with: a file may be part of a script only where two
policies meet."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind
from rqueue.protocol.scripts import SCRIPTS


def _pairs() -> list[Kind]:
    kinds = [Kind.of([name]) for name in POLICIES if name not in PLAIN.policies]
    for pair in combinations(kinds, 2):
        try:
            kinds.append(Kind.of([name for kind in pair for name in kind.policies]))
        except ExcludedPolicies:
            continue
    return kinds


KINDS: Final = (PLAIN, *_pairs())
"""The plain one, that of each policy, and that of each two that go together."""


def asking(hook: str) -> list[str]:
    """The scripts that ask this hook in some kind."""
    return [
        name
        for name in SCRIPTS.names()
        if any(hook in SCRIPTS.script(name, kind).asks for kind in KINDS)
    ]
