"""Unique jobs: of one key one job waits or runs at a time."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("unique")
