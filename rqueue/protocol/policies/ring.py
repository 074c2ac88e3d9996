"""Ring: at most so many jobs are ready, the oldest of the lowest level makes room (Q-67)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "ring",
    options=(("ring_jobs", 0, 1_000_000_000),),
    excludes=(
        *("ttl", "last_value", "exclusive", "groups", "selectors", "lifetime", "bounded"),
        "max_bytes",
        *("hold", "refusals", "unique", "flows", "limits"),
        *("front", "shard", "shares"),
    ),
)
"""Its option: 0 is no limit."""
