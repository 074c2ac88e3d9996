"""Build the calls that look at what a queue keeps of its limits, named as in the names of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text

__all__ = ["LimitUse", "PermitsState", "limit_use", "permits_state"]


class PermitsState(NamedTuple):
    """At one moment: how many permits of each limit are out, of which limits each job has one, how
    many were set, which limits are waited for, and which of those are still to be offered."""

    out: dict[str, int]
    claims: dict[str, list[str]]
    most: dict[str, int]
    waited_for: set[str]
    reopened: set[str]

    @property
    def counted(self) -> dict[str, int]:
        """How many permits the jobs have."""
        return dict(Counter(limit for limits in self.claims.values() for limit in limits))

    def allowed(self, limit: str, said: int) -> int:
        """How many a limit allows, of which a job says so many."""
        return self.most.get(limit, self.most.get(limit.partition("=")[0], said))


class LimitUse(NamedTuple):
    """Of one limit: how many permits are out, and how many were set; None: its jobs say how
    many."""

    out: int
    most: int | None


def _pairs(flat: Any) -> dict[str, str]:
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {raw_text(name): raw_text(value) for name, value in pairs}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _read_state(replies: Sequence[Any]) -> PermitsState:
    out, claims, most, waited_for, reopened = replies
    return PermitsState(
        {limit: _number(text) for limit, text in _pairs(out).items()},
        {id_: limits.split() for id_, limits in _pairs(claims).items()},
        {limit: int(text) for limit, text in _pairs(most).items() if text.isdecimal()},
        {raw_text(name) for name in waited_for},
        {raw_text(name) for name in reopened},
    )


def permits_state(keys: QueueKeys) -> CommandCall[PermitsState]:
    """What is kept of all limits."""
    commands = [
        ("HGETALL", keys.permits),
        ("HGETALL", keys.claims),
        ("HGETALL", keys.limits),
        ("ZRANGE", keys.blocked, 0, -1),
        ("SMEMBERS", keys.reopened),
    ]
    return CommandCall(keys.meta, commands, _read_state)


def _read_use(replies: Sequence[Any]) -> list[LimitUse]:
    if not replies:
        return []
    out, most = ([_number(raw_text(text or b"0")) for text in found] for found in replies)
    said = [None if text is None else number for text, number in zip(replies[1], most, strict=True)]
    return [
        LimitUse(max(0, number), own if own is not None else of_all)
        for number, own, of_all in zip(out, said[::2], said[1::2], strict=True)
    ]


def limit_use(keys: QueueKeys, limits: Sequence[str]) -> CommandCall[list[LimitUse]]:
    """How far these limits are used."""
    names = [part for limit in limits for part in (limit, limit.partition("=")[0])]
    asked = [("HMGET", keys.permits, *limits), ("HMGET", keys.limits, *names)] if limits else []
    return CommandCall(keys.meta, asked, _read_use)
