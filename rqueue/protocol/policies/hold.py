"""Hold: a job keeps its place although it is not delivered before its time (Q-63)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy(
    "hold",
    options=(("hold", 0, 1),),
)
"""Its option: 0 = such a job is delivered at once."""
