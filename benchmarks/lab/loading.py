"""A fast loader: jobs by the hundred thousand, packed once, in the queue's own enqueue calls."""

from __future__ import annotations

import orjson
import redis

from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection

BATCH = 1000
NORMAL = "4,,0,"


def envelope(task: str, *args: object) -> bytes:
    """The bytes that the client packs for a call without options."""
    return orjson.dumps([task, args] if args else [task])


BODY = envelope("hit", "x" * 130)
"""What jobs carry where it does not matter what."""


def load(
    client: redis.Redis, keys: QueueKeys, body: bytes, count: int, terms: str = NORMAL
) -> None:
    """Enqueue `count` jobs with the same envelope."""
    connection = Connection(client, timeout=120)
    for first in range(0, count, BATCH):
        flat: list[str | bytes] = []
        for _ in range(first, min(first + BATCH, count)):
            flat += (new_id(), body)
        connection.run(commands.enqueue_alike(keys, flat, terms), queue=keys.queue)
    connection.close()


def load_each(
    client: redis.Redis, keys: QueueKeys, bodies: list[bytes], terms: str = NORMAL
) -> None:
    """Enqueue one job for every envelope."""
    connection = Connection(client, timeout=120)
    for first in range(0, len(bodies), BATCH):
        flat: list[str | bytes] = []
        for body in bodies[first : first + BATCH]:
            flat += (new_id(), body)
        connection.run(commands.enqueue_alike(keys, flat, terms), queue=keys.queue)
    connection.close()
