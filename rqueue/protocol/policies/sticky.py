"""Sticky groups: a group is its consumer's until that leaves, or it is reset (Q-64, A-26)."""

from hashlib import sha1

from rqueue.model.names import group_text
from rqueue.protocol.policies.policy import Policy

BUCKETS = 1024
"""Buckets of a queue that does not say how many."""

MOST = 4096
"""Buckets that a queue may have."""

POLICY = Policy(
    "sticky",
    options=(("sticky", 1, MOST), ("rebalance", 0, 1)),
    requires=("groups",),
)


def bucket_of(group: str, buckets: int) -> int:
    """The bucket of a group, as `lua/policies/sticky.lua` finds it."""
    digest = sha1(group_text(group).encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % buckets
