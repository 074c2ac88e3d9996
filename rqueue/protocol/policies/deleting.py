"""A queue that is being deleted: it takes nothing any more (Q-61)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("deleting", requires=("outbox",))
