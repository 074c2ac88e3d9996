"""Clients of the primary that Sentinels name: each new connection asks them who it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from rqueue.model.server_url import SentinelUrl, sentinel_url
from rqueue.transport.tls import SentinelTlsConnection

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["open_async_primary", "open_primary", "sentinels_of"]

ASK_S = 2.0
"""Seconds that one Sentinel may take to be reached, and to answer, before the next one is asked."""


class _Primary(redis.Redis):
    """A client that closes its connections to the Sentinels too."""

    def close(self) -> None:
        super().close()
        manager = getattr(self.connection_pool, "sentinel_manager", None)
        if manager is not None:
            manager.close()


def open_primary(url: str, options: dict[str, Any]) -> redis.Redis:
    """A client of the primary behind a `redis+sentinel://` URL. options: of the client itself.
    Raises ValueError for a URL that cannot be understood."""
    parts = sentinel_url(url)
    server, asking = _options(parts, options)
    asking["retry"] = Retry(NoBackoff(), 0)
    if parts.tls:
        server["connection_class"] = SentinelTlsConnection
    client: redis.Redis = Sentinel(parts.sentinels, sentinel_kwargs=asking, **server).master_for(
        parts.name
    )
    return client


def open_async_primary(url: str, options: dict[str, Any]) -> redis.asyncio.Redis:
    """Do as `open_primary` does, for asyncio."""
    import redis.asyncio
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.asyncio.sentinel import Sentinel as AsyncSentinel

    parts = sentinel_url(url)
    server, asking = _options(parts, options)
    asking["retry"] = AsyncRetry(NoBackoff(), 0)
    server["ssl"] = parts.tls

    class AsyncPrimary(redis.asyncio.Redis):
        """As `_Primary`."""

        async def aclose(self, close_connection_pool: bool | None = None) -> None:
            await super().aclose(close_connection_pool)
            for sentinel in sentinels.sentinels:
                await sentinel.aclose()

    sentinels = AsyncSentinel(parts.sentinels, sentinel_kwargs=asking, **server)
    client: redis.asyncio.Redis = sentinels.master_for(parts.name, redis_class=AsyncPrimary)
    return client


def _options(parts: SentinelUrl, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What redis-py wants to know for the server, and for the Sentinels."""
    server: dict[str, Any] = {**options, **parse_url(parts.server)}
    for name in ("host", "port", "connection_class"):
        server.pop(name, None)
    limit = min(ASK_S, options.get("socket_connect_timeout") or ASK_S)
    asking: dict[str, Any] = {
        "socket_connect_timeout": limit,
        "socket_timeout": limit,
        "username": parts.username,
        "password": parts.password,
    }
    if parts.tls:
        tls = {name: value for name, value in server.items() if name.startswith("ssl_")}
        asking |= {"ssl": True, **tls}
    return server, asking


def sentinels_of(pool: Any) -> str | None:
    """The address of the primary behind a pool's Sentinels, without scheme and credentials, as in
    `a:26379,b:26379/name/0`, and where that was found last; None for another pool."""
    manager = getattr(pool, "sentinel_manager", None)
    if manager is None:
        return None
    asked = [sentinel.connection_pool.connection_kwargs for sentinel in manager.sentinels]
    hosts = sorted(f"{one.get('host', 'localhost')}:{one.get('port', 6379)}" for one in asked)
    where = f"{','.join(hosts)}/{pool.service_name}/{pool.connection_kwargs.get('db', 0)}"
    if pool.master_address:
        host, port = pool.master_address
        where += f", now {host}:{port}"
    return where
