"""Discarding: a queue that keeps no dead letters (C-07, C-08)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("discarding", options=(("dead_letters", 0, 1),))
"""Its option: 0 is none, 1 takes that back."""
