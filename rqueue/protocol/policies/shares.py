"""Shares: those that have ready jobs take turns, by weight."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("shares")
