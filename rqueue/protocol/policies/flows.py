"""Workflows: jobs that wait for others, and get their results."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("flows")
