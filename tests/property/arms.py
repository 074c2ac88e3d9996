"""How each policy is put to use in a queue that has several at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rqueue.model.job_limit import JobLimit
from rqueue.model.parents import Parents
from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol.policies import POLICIES, ExcludedPolicies, Kind

Terms = Callable[[random.Random, int], Mapping[str, Any]]


def _nothing(_random: random.Random, _number: int) -> Mapping[str, Any]:
    return {}


class Arm(NamedTuple):
    """How a policy is put to use: the queue's options, what its jobs say of themselves, what a
    consumer selects, whether consumers refuse jobs, and whether the queue is a shard. inside: it
    comes with others, or its queues have no jobs."""

    options: Mapping[str, int | str] = {}
    terms: Terms = _nothing
    select: str = ""
    refuses: bool = False
    shard: bool = False
    inside: bool = False


def _named(word: str, names: str = "ab") -> Terms:
    return lambda random, _: {word: random.choice(["", *names])}


LIMITS = (JobLimit("two", 2).text, JobLimit("one", 1, key="a").text)

ARMS: dict[str, Arm] = {
    "levels": Arm(inside=True),
    "outbox": Arm(inside=True),
    "deleting": Arm(inside=True),
    "ttl": Arm({"ttl_max_ms": 9000}, lambda r, _: {"ttl_ms": r.choice([0, 900, 3000])}),
    "sticky": Arm({"sticky": 4}, _named("group")),
    "hold": Arm({}, lambda r, _: {"hold": True, "delay_ms": r.choice([0, 800])}),
    "last_value": Arm({}, _named("key")),
    "ring": Arm({"ring_jobs": 3}),
    "ring_bytes": Arm({"ring_bytes": 60}),
    "exclusive": Arm({"live_consumers": 1}),
    "shares": Arm({}, _named("share")),
    "limits": Arm({}, lambda r, _: {"limits": r.choice([(), LIMITS[:1], LIMITS])}),
    "groups": Arm({}, _named("group")),
    "selectors": Arm({}, select="x = 1"),
    "refusals": Arm(refuses=True),
    "sorted": Arm({}, lambda r, _: {"sort": r.choice(["", *map(sort_key_text, (1, 2))])}),
    "front": Arm({}, lambda r, _: {"front": r.random() < 0.3}),
    "flows": Arm(
        {},
        lambda r, n: (
            {"waits": Parents(1, ids=(f"j{n - 1}",)).text, "delay_ms": 0}
            if n and r.random() < 0.3
            else {}
        ),
    ),
    "schedules": Arm(),
    "alternate": Arm({"dead_to": "elsewhere"}),
    "discarding": Arm({"dead_letters": 0}),
    "lifetime": Arm({"delete_if": 1, "delete_after_ms": 3_600_000}),
    "bounded": Arm({"max_jobs": 6}),
    "max_bytes": Arm({"max_bytes": 90}),
    "unique": Arm({}, lambda r, _: {"unique": r.choice(["", "ex:a", "sx:a", "sr:a", "ef:b"])}),
    "alerts": Arm({"alert_depth": 3}),
    "shard": Arm(shard=True),
    "sharded": Arm(inside=True),
}
"""Each policy has one: one without is of no combination that is tried."""


def kinds(policies: int) -> list[Kind]:
    """All kinds with so many policies that are asked for by name, and what these bring along."""
    names = [name for name in POLICIES if name in ARMS and not ARMS[name].inside]
    found: dict[tuple[str, ...], Kind] = {}

    def add(chosen: tuple[str, ...], start: int) -> None:
        try:
            kind = Kind.of(chosen)
        except ExcludedPolicies:
            return
        if len(chosen) == policies:
            found[kind.policies] = kind
            return
        for at in range(start, len(names)):
            add((*chosen, names[at]), at + 1)

    add((), 0)
    return list(found.values())
