"""Names of keys, found by SCAN: the only way to what no other key speaks of."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from rqueue.protocol.keys import meta_pattern, queue_in
from rqueue.protocol.replies import raw_text
from rqueue.transport.redis_client import translated

PAGE = 1000
"""Keys that one SCAN command looks at."""


def scan(client: redis.Redis, pattern: str) -> Iterator[str]:
    """Names of all keys that match, a page at a time; each once. Of a cluster every node is
    scanned. Raises the tree of `rqueue.errors`."""
    seen: set[str] = set()
    with translated(client):
        for key in client.scan_iter(match=pattern, count=PAGE):
            name = raw_text(key)
            if name not in seen:
                seen.add(name)
                yield name


def queue_names(client: redis.Redis, namespace: str) -> list[str]:
    """Names of the queues of a namespace, sorted.

    There is no list of queues in Redis (it would be a key outside their slots): the `meta` keys are
    found by SCAN, so the cost grows with the number of keys on the server. Raises the tree of
    `rqueue.errors`.
    """
    found = {queue_in(key, namespace) for key in scan(client, meta_pattern(namespace))}
    return sorted(found - {""})
