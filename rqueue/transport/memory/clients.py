"""Clients of redis-py on a server in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.transport.memory.connection import MemoryConnection

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["open_async_memory_client", "open_memory_client"]


def open_memory_client(name: str) -> redis.Redis:
    """A client of this process's server of a name, which repeats nothing: nothing breaks."""
    pool = redis.ConnectionPool(
        connection_class=MemoryConnection,
        max_connections=10_000,
        memory=name,
        retry=Retry(NoBackoff(), 0),
    )
    return redis.Redis.from_pool(pool)


def open_async_memory_client(name: str) -> redis.asyncio.Redis:
    """The same for asyncio."""
    import redis.asyncio
    from redis.asyncio.retry import Retry as AsyncRetry

    from rqueue.transport.memory.async_connection import AsyncMemoryConnection

    pool: redis.asyncio.ConnectionPool = redis.asyncio.ConnectionPool(
        connection_class=AsyncMemoryConnection,
        max_connections=10_000,
        memory=name,
        retry=AsyncRetry(NoBackoff(), 0),
    )
    return redis.asyncio.Redis.from_pool(pool)
