"""A ring in bytes: at most so many are ready, the oldest of the lowest level makes room (Q-67)."""

from rqueue.protocol.policies.max_bytes import MOST_BYTES
from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "ring_bytes",
    options=(("ring_bytes", 0, MOST_BYTES),),
    requires=("ring",),
)
"""Its option: 0 is no limit. A job is as large as its envelope."""
