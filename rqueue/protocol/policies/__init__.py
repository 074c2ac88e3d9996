"""Kinds of queues: the policies that a queue's scripts are composed of, and its stamp.

A kind is written into field `v` of the queue's `meta`: the schema's number and, but for a plain
queue, its policies in their order, `1 ttl levels`. A script of another kind answers `KIND`, with
the stamp, before it writes anything; the client sends that kind's script from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from rqueue.protocol.policies import (
    alerts,
    alternate,
    bounded,
    deleting,
    discarding,
    exclusive,
    flows,
    front,
    groups,
    hold,
    last_value,
    levels,
    lifetime,
    limits,
    max_bytes,
    outbox,
    refusals,
    ring,
    ring_bytes,
    schedules,
    selectors,
    shard,
    sharded,
    shares,
    sorted_,
    sticky,
    ttl,
    unique,
)
from rqueue.protocol.policies.policy import Policy

__all__ = ["PLAIN", "POLICIES", "SCHEMA", "ExcludedPolicies", "Kind", "Policy", "UnknownPolicy"]

SCHEMA = "1"
"""The version of the layout in Redis that all kinds share."""

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        ttl.POLICY,
        sticky.POLICY,
        hold.POLICY,
        last_value.POLICY,
        ring_bytes.POLICY,
        ring.POLICY,
        exclusive.POLICY,
        shares.POLICY,
        limits.POLICY,
        groups.POLICY,
        selectors.POLICY,
        refusals.POLICY,
        sorted_.POLICY,
        levels.POLICY,
        front.POLICY,
        outbox.POLICY,
        flows.POLICY,
        schedules.POLICY,
        alternate.POLICY,
        discarding.POLICY,
        lifetime.POLICY,
        deleting.POLICY,
        max_bytes.POLICY,
        bounded.POLICY,
        unique.POLICY,
        alerts.POLICY,
        shard.POLICY,
        sharded.POLICY,
    )
}
"""All policies, in the order in which their hooks are asked."""


class UnknownPolicy(ValueError):
    """A stamp names a policy, or a revision of one, that this release does not have."""


class ExcludedPolicies(ValueError):
    """These two policies cannot be those of one queue."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"a queue has the policy {one} or the policy {other}, not both")
        self.policies = one, other


class Kind(NamedTuple):
    """The policies of a queue, by name, in their order."""

    policies: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Kind:
        """The kind with these policies; one that orders waiting jobs is added where none is named,
        and what they require.

        Raises `UnknownPolicy` and `ExcludedPolicies`.
        """
        wanted = {*names, levels.POLICY.name}
        if unknown := sorted(wanted - POLICIES.keys()):
            raise UnknownPolicy(f"no policy {unknown[0]!r}; policies: {', '.join(POLICIES)}")
        wanted |= {name for its in wanted for name in POLICIES[its].requires}
        for name in sorted(wanted):
            if excluded := wanted & {*POLICIES[name].excludes}:
                raise ExcludedPolicies(name, min(excluded))
        return cls(tuple(name for name in POLICIES if name in wanted))

    @classmethod
    def parse(cls, stamp: str) -> Kind:
        """The kind of a queue with this stamp. Raises `UnknownPolicy`."""
        schema, *words = stamp.split(" ")
        if schema != SCHEMA:
            raise UnknownPolicy(f"schema {schema!r}, where this release knows {SCHEMA!r}")
        known = {policy.word: policy.name for policy in POLICIES.values()}
        for word in words:
            if word not in known:
                raise UnknownPolicy(f"this queue needs policy {word!r}")
        return cls.of(known[word] for word in words)

    def having(self, needs: tuple[str, ...]) -> Kind:
        """This kind with these policies too."""
        return _having(self, needs)

    @property
    def stamp(self) -> str:
        """What `meta` says of a queue of this kind."""
        if self == PLAIN:
            return SCHEMA
        words = [POLICIES.get(name, Policy(name)).word for name in self.policies]
        return " ".join([SCHEMA, *words])

    def __str__(self) -> str:
        return "+".join(self.policies)


@cache
def _having(kind: Kind, needs: tuple[str, ...]) -> Kind:
    return Kind.of((*kind.policies, *needs))


PLAIN = Kind((levels.POLICY.name,))
"""What a queue is that nobody declared otherwise."""
