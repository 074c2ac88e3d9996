"""Alternate queues: where dead letters and expired jobs go (Q-66, A-22, A-23)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("alternate", names=("dead_to", "expired_to"), requires=("outbox",))
"""Its options are names of queues; "" is none."""
