"""Last value: of the jobs of one key only the latest waits (Q-15)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "last_value",
    excludes=(
        *("unique", "ttl", "groups", "selectors", "exclusive", "ring", "lifetime", "hold"),
        *("refusals", "flows", "limits", "front", "shard", "shares"),
    ),
)
