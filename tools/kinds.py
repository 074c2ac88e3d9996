"""Kinds of queues to look at all sources with: a file may be part of a script only where two
policies meet."""

from __future__ import annotations

from functools import cache
from typing import Final

from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind
from rqueue.protocol.scripts import SCRIPTS


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
