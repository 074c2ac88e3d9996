"""Samples of the calls that ask whether a queue is there, and what it keeps of its shards, for
`command_samples`."""

from __future__ import annotations

from typing import Any

from rqueue.protocol.commands import queue_keys, shards
from rqueue.protocol.keys import QueueKeys
from tests.transport.limit_samples import Sample


def fill(client: Any, keys: QueueKeys) -> None:
    """The table of shards that a shard keeps."""
    client.hset(keys.base + "kept_shards", mapping={"version": 3, "0": "open"})


def samples(keys: QueueKeys, empty: QueueKeys) -> dict[str, list[Sample]]:
    return {
        "kept_table": [
            Sample(shards.kept_table(keys), {"version": "3", "0": "open"}),
            Sample(shards.kept_table(empty), {}),
        ],
        "is_used": [
            Sample(queue_keys.is_used(keys), True),
            Sample(queue_keys.is_used(empty), False),
        ],
        "queue_exists": [
            Sample(queue_keys.queue_exists(keys), True),
            Sample(queue_keys.queue_exists(empty), False),
        ],
        "guard_exists": [Sample(queue_keys.guard_exists(keys), False)],
        "meta_fields": [Sample(queue_keys.meta_fields(keys, "v", "nothing"), [b"1", None])],
    }
