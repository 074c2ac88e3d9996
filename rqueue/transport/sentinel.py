"""Clients of the primary that Sentinels name: each new connection asks them who it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from rqueue.model.server_url import SentinelUrl, sentinel_url
from rqueue.protocol.slots import Address
from rqueue.transport.tls import SentinelTlsConnection

if TYPE_CHECKING:
    import redis.asyncio

__all__ = [
    "ASK_S",
    "View",
    "aprimary_named",
    "open_async_primary",
    "open_primary",
    "primary_named",
    "sentinels_of",
    "views_of",
]

ASK_S = 2.0
"""Seconds that one Sentinel may take to be reached, and to answer, before the next one is asked."""


class _Sentinels(Sentinel):
    """Those whose error, where none of them named a primary, has what one of them was last heard
    of: as `of_sentinel`, since redis-py's text has no more than its class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._heard = _Heard()
        for sentinel in self.sentinels:
            vars(sentinel)["sentinel_masters"] = self._heard.of(sentinel)

    def discover_master(self, service_name: str) -> Any:
        try:
            return super().discover_master(service_name)  # type: ignore[no-untyped-call]
        except rx.ConnectionError as error:
            raise self._heard.noted(error) from None
        finally:
            self._heard.sort(self.sentinels)


class _Heard:
    """The last error of those that were asked, and which of them give no answer."""

    def __init__(self) -> None:
        self._last: Exception | None = None
        self._silent: set[int] = set()

    def of(self, sentinel: Any) -> Callable[[], Any]:
        """How this Sentinel is asked, noting what comes of it."""
        ask = sentinel.sentinel_masters

        def asked() -> Any:
            try:
                said = ask()
            except rx.RedisError as error:
                self._failed(sentinel, error)
                raise
            self._silent.discard(id(sentinel))
            return said

        return asked

    def of_async(self, sentinel: Any) -> Callable[[], Awaitable[Any]]:
        """The same, awaited."""
        ask = sentinel.sentinel_masters

        async def asked() -> Any:
            try:
                said = await ask()
            except rx.RedisError as error:
                self._failed(sentinel, error)
                raise
            self._silent.discard(id(sentinel))
            return said

        return asked

    def _failed(self, sentinel: Any, error: Exception) -> None:
        self._last = error
        self._silent.add(id(sentinel))

    def sort(self, sentinels: list[Any]) -> None:
        """Those that give no answer are asked last the next time: each costs `ASK_S`."""
        if self._silent:
            sentinels.sort(key=lambda sentinel: id(sentinel) in self._silent)

    def noted(self, error: Exception) -> Exception:
        """An error of theirs, with what the last one of them was heard of."""
        if self._last is not None:
            error.of_sentinel, self._last = self._last, None  # type: ignore[attr-defined]
        return error


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
    sentinels: Any = _Sentinels(parts.sentinels, sentinel_kwargs=asking, **server)
    client: redis.Redis = sentinels.master_for(parts.name)
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

    class AsyncSentinels(AsyncSentinel):
        """As `_Sentinels`."""

        async def discover_master(self, service_name: str) -> Any:
            try:
                return await super().discover_master(service_name)
            except rx.ConnectionError as error:
                raise heard.noted(error) from None
            finally:
                heard.sort(self.sentinels)

    heard = _Heard()
    sentinels: Any = AsyncSentinels(parts.sentinels, sentinel_kwargs=asking, **server)  # type: ignore[no-untyped-call]
    for sentinel in sentinels.sentinels:
        vars(sentinel)["sentinel_masters"] = heard.of_async(sentinel)
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


def primary_named(pool: Any, _silent: Collection[Address]) -> Collection[Address] | None:
    """The primary that the Sentinels of a pool name now, None if those that answer name none.
    Raises redis-py's errors if none answers."""
    try:
        return (Address(*pool.get_master_address()),)
    except MasterNotFoundError as error:
        if not _some_answer(pool, error):
            raise
        return None


async def aprimary_named(pool: Any, _silent: Collection[Address]) -> Collection[Address] | None:
    """Do as `primary_named` does, for asyncio."""
    try:
        return (Address(*await pool.get_master_address()),)
    except MasterNotFoundError as error:
        if not _some_answer(pool, error):
            raise
        return None


def _some_answer(pool: Any, error: MasterNotFoundError) -> bool:
    """Whether some Sentinel has answered, though none named a primary: redis-py writes a line for
    each that did not."""
    return str(error).count("> - ") < len(pool.sentinel_manager.sentinels)


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


class View(NamedTuple):
    """What one Sentinel says. replicas: how many are up, and how many are not."""

    primary: str
    flags: str
    replicas: tuple[int, int]

    @property
    def promotes(self) -> bool:
        """True if a failover is under way."""
        return "failover_in_progress" in self.flags

    @property
    def down(self) -> bool:
        """True if it counts the primary as down."""
        return "_down" in self.flags


def views_of(pool: Any) -> tuple[dict[str, View], dict[str, Exception]]:
    """What each Sentinel of a pool says, by its address, and why the others say nothing."""
    views: dict[str, View] = {}
    silent: dict[str, Exception] = {}
    for sentinel in pool.sentinel_manager.sentinels:
        kwargs = sentinel.connection_pool.connection_kwargs
        address = f"{kwargs.get('host', 'localhost')}:{kwargs.get('port', 6379)}"
        try:
            state = sentinel.sentinel_master(pool.service_name, return_responses=True)
            replicas = sentinel.sentinel_slaves(pool.service_name)
        except (rx.RedisError, OSError) as error:
            silent[address] = error
            continue
        up = [one for one in replicas if not (one["is_sdown"] or one["is_disconnected"])]
        place = f"{state['ip']}:{state['port']}"
        views[address] = View(place, str(state["flags"]), (len(up), len(replicas) - len(up)))
    return views, silent
