"""Alerts: one where an arrival brings the queue to a depth (Q-72)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("alerts", options=(("alert_depth", 0, 1_000_000_000),))
"""Its option: 0 is none."""
