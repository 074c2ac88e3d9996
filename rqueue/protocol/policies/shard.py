"""Shards: queues over which one logical queue is spread."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "shard",
    excludes=(
        *("sticky", "hold", "last_value", "ring", "limits", "selectors", "refusals", "sorted"),
        *("front", "flows", "schedules", "lifetime", "shares"),
    ),
)
