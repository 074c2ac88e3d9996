"""Refusals: a job does not come again to a consumer that refused it (Q-08)."""

from rqueue.protocol.policies.policy import Policy

ELSEWHERE = "elsewhere"
"""Where a job goes that its consumer refuses: the place of a `Retried`."""

POLICY = Policy("refusals")
