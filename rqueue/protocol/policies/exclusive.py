"""Exclusive consumers: so many are live, the others stand by (Q-18, Q-68, A-28, A-36)."""

from rqueue.protocol.policies.policy import Policy

MOST = 10000
"""Consumers that a queue takes at the most."""

POLICY = Policy(
    "exclusive",
    options=(("live_consumers", 0, MOST), ("strict", 0, 1), ("max_consumers", 0, MOST)),
)
"""Its options: 0 is no limit."""
