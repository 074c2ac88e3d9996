"""Limits: of the jobs that name one so many are delivered at a time as it allows."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("limits")
