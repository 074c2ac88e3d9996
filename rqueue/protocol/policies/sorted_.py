"""Sorted: jobs go by the sort keys that they were given at enqueue (Q-14)."""

from rqueue.protocol.policies.policy import Policy

ORDERS = ("ascending", "descending")
"""Which key goes first, by `descending`: the least, or the greatest."""

POLICY = Policy(
    "sorted",
    options=(("descending", 0, 1),),
)
