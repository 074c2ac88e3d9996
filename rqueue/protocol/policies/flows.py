"""Workflows: jobs that wait for others, and get their results."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "flows",
    excludes=(
        *("hold", "last_value", "ring", "selectors", "refusals", "sorted", "lifetime"),
        *("unique", "limits", "shard", "shares"),
    ),
)
