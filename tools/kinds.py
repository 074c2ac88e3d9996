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


def _greatest() -> list[Kind]:
    """Those to which no policy can be added."""
    found: list[Kind] = []
    growing = [PLAIN]
    seen = {PLAIN}
    while growing:
        kind = growing.pop()
        more = [grown for name in POLICIES if (grown := _with(kind, name)) is not None]
        if not more:
            found.append(kind)
        growing += [grown for grown in more if grown not in seen]
        seen |= {*more}
    return found


def _with(kind: Kind, name: str) -> Kind | None:
    """The kind with one policy more; None where it has it, or they exclude each other."""
    if name in kind.policies:
        return None
    try:
        return Kind.of((*kind.policies, name))
    except ExcludedPolicies:
        return None


GREATEST: Final = tuple(_greatest())
"""The kinds to which no policy can be added: their scripts are the longest."""


def asking(hook: str) -> list[str]:
    """The scripts that ask this hook in some kind."""
    return [
        name
        for name in SCRIPTS.names()
        if any(hook in SCRIPTS.script(name, kind).asks for kind in KINDS)
    ]
