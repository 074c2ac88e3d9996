"""Last value: of the jobs of one key only the latest waits (Q-15)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("last_value")
