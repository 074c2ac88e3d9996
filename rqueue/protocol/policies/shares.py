"""Shares: those that have ready jobs take turns, by weight."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "shares",
    excludes=(
        *("groups", "selectors", "last_value", "lifetime", "ring"),
        *("hold", "sorted", "refusals", "flows", "front", "shard"),
    ),
)
