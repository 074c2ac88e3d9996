"""Bounded in bytes: a queue with a greatest number of bytes that wait (Q-67, X-16)."""

from rqueue.protocol.policies.policy import Policy

MOST_BYTES = 1_000_000_000_000_000
"""The greatest limit."""

POLICY = Policy(
    "max_bytes",
    options=(("max_bytes", 0, MOST_BYTES),),
    requires=("bounded",),
)
"""Its option: 0 is no limit. A job is as large as its envelope."""
