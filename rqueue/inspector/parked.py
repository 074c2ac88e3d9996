"""Parked jobs: those that wait for a worker that knows their task."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from rqueue.protocol.commands.job_notes import notes_of
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

__all__ = ["parked_among"]


def parked_among(client: redis.Redis, keys: QueueKeys, ids: Sequence[str]) -> frozenset[str]:
    """Which of these jobs are parked."""
    why = execute(client, notes_of(keys, "parked", ids)) if ids else ()
    return frozenset(id_ for id_, found in zip(ids, why, strict=True) if found is not None)
