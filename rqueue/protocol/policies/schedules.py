"""Periodic jobs: schedules, whose ticks become jobs (A-41)."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("schedules")
