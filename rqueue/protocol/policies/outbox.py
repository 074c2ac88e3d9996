"""The outbox: jobs that are on their way to other queues."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("outbox")
