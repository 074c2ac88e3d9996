"""Whose the sticky groups of a queue are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import redis

from rqueue.protocol.commands.owner_notes import own_sizes, owners_of, states_of
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies.sticky import bucket_of
from rqueue.transport.redis_client import execute


@dataclass(frozen=True, slots=True)
class GroupOwner:
    """A consumer that owns `buckets` of groups; `ready` jobs are ready for it alone. `state`: the
    list that it is in; "" where it is not registered."""

    consumer: str
    buckets: int
    ready: int
    state: str


@dataclass(frozen=True, slots=True)
class GroupOwners:
    """`buckets`: into how many the groups of the queue fall; 0: its groups are not sticky."""

    buckets: int
    consumers: tuple[GroupOwner, ...]

    def bucket_of(self, group: str) -> int:
        """The bucket of a group."""
        return bucket_of(group, self.buckets)


def group_owners(client: redis.Redis, keys: QueueKeys) -> GroupOwners:
    """The owners of buckets, by name."""
    found = execute(client, owners_of(keys))
    counts = Counter(found.owners.values())
    names = sorted(counts)
    ready = execute(client, own_sizes(keys, names))
    states = execute(client, states_of(keys, names))
    owners = zip(names, (counts[name] for name in names), ready, states, strict=True)
    return GroupOwners(found.buckets, tuple(GroupOwner(*owner) for owner in owners))
