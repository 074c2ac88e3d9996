"""Names of keys, found by SCAN: the only way to what no other key speaks of.

Of a cluster every node is scanned. While slots move between nodes a key may be missed on both, so
then they are scanned again; a node that cannot be asked is named, not passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import redis

from rqueue.errors import ServerError
from rqueue.protocol.keys import QueueKeys, meta_pattern, queue_in
from rqueue.protocol.replies import raw_text
from rqueue.transport.asked_ahead import AskedAhead
from rqueue.transport.nodes import Nodes, missing_error, node_of, nodes_of
from rqueue.transport.redis_client import is_cluster, translated

__all__ = ["FoundQueues", "find_queues", "keys_by_base", "queue_names", "scan_queue"]

PAGE = 1000
"""Keys that one SCAN command looks at."""

ROUNDS = 4
"""How often the nodes of a cluster are scanned at the most, while its slots move all the time."""


@dataclass(frozen=True, slots=True)
class FoundQueues:
    """Queues of a namespace. nodes: name, sorted -> address of its node, "" where there is one
    server alone. missing: nodes that could not be asked, whose queues are not here, and why."""

    nodes: dict[str, str]
    missing: dict[str, ServerError] = field(default_factory=dict)


def _scan(client: redis.Redis, pattern: str) -> Iterator[str]:
    """Names of all keys of one server that match, a page at a time; each once."""
    seen: set[str] = set()
    with translated(client):
        for key in client.scan_iter(match=pattern, count=PAGE):
            name = raw_text(key)
            if name not in seen:
                seen.add(name)
                yield name


def scan_queue(client: redis.Redis, keys: QueueKeys, rest: str = "*") -> Iterator[str]:
    """Names of a queue's keys; rest: what follows its base, as a pattern. Of a cluster its own node
    is scanned alone. Raises the tree of `rqueue.errors`."""
    ahead: object = client
    if isinstance(ahead, AskedAhead) and (known := ahead.keys_of(keys, rest)) is not None:
        yield from known
        return
    if not is_cluster(client):
        yield from _scan(client, keys.pattern(rest))
        return
    with nodes_of(client) as found:
        home = node_of(client, keys)
        for address, node in found.nodes:
            if address == home:
                yield from _scan(node, keys.pattern(rest))
                return
        raise missing_error(client, {home: found.missing[home]})


def keys_by_base(client: redis.Redis, queues: Iterable[QueueKeys]) -> dict[str, list[str]]:
    """Base -> names of the keys of these queues of one namespace, sorted: of all in one scan. {} of
    a cluster. Raises the tree of `rqueue.errors`."""
    found: dict[str, list[str]] = {keys.base: [] for keys in queues}
    if not found or is_cluster(client):
        return {}
    (namespace,) = {keys.namespace for keys in queues}
    for key in _scan(client, meta_pattern(namespace).removesuffix("meta") + "*"):
        base = key[: key.find("}:") + 2]
        if base in found:
            found[base].append(key)
    for names in found.values():
        names.sort()
    return found


def find_queues(client: redis.Redis, namespace: str) -> FoundQueues:
    """Queues of a namespace, and the nodes that could not be asked for theirs.

    There is no list of queues in Redis (it would be a key outside their slots): the `meta` keys are
    found by SCAN, so the cost grows with the number of keys on the servers. Raises the tree of
    `rqueue.errors` where nothing can be said.
    """
    pattern = meta_pattern(namespace)
    places: dict[str, str] = {}
    missing: dict[str, ServerError] = {}
    before, twice = None, False
    for _ in range(ROUNDS):
        with nodes_of(client) as found:
            layout = found.layout()
            if layout == before and (twice or not found.moving):
                break
            # what was on its way, from a node not yet scanned to one that was, is found now
            twice = layout == before
            before = layout
            missing = dict(found.missing)
            _visit(found, pattern, namespace, places, missing)
        if not found.views:
            break
    return FoundQueues(dict(sorted(places.items())), missing)


def _visit(
    found: Nodes,
    pattern: str,
    namespace: str,
    places: dict[str, str],
    missing: dict[str, ServerError],
) -> None:
    for address, client in found.nodes:
        try:
            for key in _scan(client, pattern):
                if name := queue_in(key, namespace):
                    places[name] = address
        except ServerError as error:
            if not address:
                raise
            missing[address] = error


def queue_names(client: redis.Redis, namespace: str) -> list[str]:
    """Names of all queues of a namespace, sorted: see `find_queues`. Raises the tree of
    `rqueue.errors`, also where a node of a cluster cannot be asked: some are not all."""
    found = find_queues(client, namespace)
    if found.missing:
        raise missing_error(client, found.missing)
    return list(found.nodes)
