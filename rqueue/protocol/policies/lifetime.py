"""Queues that go by themselves when their last consumer has left (Q-60, A-37)."""

from rqueue.protocol.policies.policy import Policy

MOST_MS = 31_536_000_000
"""The longest delay: a year."""

WHEN = ("never", "empty", "always")
"""When a queue goes, by `delete_if`."""

POLICY = Policy(
    "lifetime",
    options=(("delete_if", 0, 2), ("delete_after_ms", 0, MOST_MS)),
)
