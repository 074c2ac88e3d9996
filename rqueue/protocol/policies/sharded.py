"""The name of a queue that is spread over shards."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("sharded")
