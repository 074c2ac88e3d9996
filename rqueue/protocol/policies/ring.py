"""Ring: at most so many jobs are ready, the oldest of the lowest level makes room (Q-67)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "ring",
    options=(("ring_jobs", 0, 1_000_000_000),),
)
"""Its option: 0 is no limit."""
