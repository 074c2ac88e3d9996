"""Shards: queues over which one logical queue is spread."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("shard")
