"""Time to live: a job that waits for longer is not delivered any more (Q-62)."""

from rqueue.protocol.policies.policy import Policy

MOST_MS = 315_360_000_000
"""The longest time to live, ms: ten years."""

POLICY = Policy(
    "ttl",
    options=(
        ("ttl_ms", 0, MOST_MS),
        ("ttl_min_ms", 0, MOST_MS),
        ("ttl_max_ms", 0, MOST_MS),
        ("ttl_dead", 0, 1),
    ),
)
"""Its options: 0 is no default, no least, no greatest time; `ttl_dead`: whether what expires
becomes a dead letter."""
