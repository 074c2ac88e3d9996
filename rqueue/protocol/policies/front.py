"""Front: jobs that come before all that waits in their level; last in, first out (A-17)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "front",
    options=(("lifo", 0, 1),),
)
"""Its option: 1 = all jobs of the queue do."""
