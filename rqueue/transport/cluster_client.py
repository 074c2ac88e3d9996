"""redis-py's clients of a whole Redis Cluster: opened by a URL, and what their connections to a
node are made of.

A client that is opened here asks nobody before its first use, as all clients do; redis-py's own
asks while it is made. It repeats nothing: who calls it knows what may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from rqueue.errors import ConfigError
from rqueue.model.locks import new_lock
from rqueue.model.server_url import cluster_url
from rqueue.protocol.slots import Address
from rqueue.transport.tls import TlsConnection

if TYPE_CHECKING:
    import redis.asyncio

__all__ = [
    "LateCluster",
    "NodeOptions",
    "check_redis_py",
    "node_options",
    "open_async_cluster",
    "open_cluster",
]


OLDEST = (6, 2)
"""The first redis-py whose client of a cluster has transactions."""

OPENING = 5
"""Nodes that are asked, after the first, while a client is opened."""


def check_redis_py() -> None:
    """Raise ConfigError if this redis-py is too old for a Redis Cluster."""
    if tuple(int(number) for number in redis.__version__.split(".")[:2]) < OLDEST:
        said = f"a Redis Cluster needs redis-py 6.2 or later, and {redis.__version__} is installed"
        raise ConfigError("redis", f"{said}: pip install 'redis>=6.2'")


class NodeOptions(NamedTuple):
    """What is needed to connect to the nodes of a cluster. seeds: those that are known at first;
    kind, options: class and arguments of redis-py's connection, without the address."""

    seeds: tuple[Address, ...]
    kind: type[Any]
    options: dict[str, Any]

    @property
    def url(self) -> str:
        """For messages, without credentials."""
        # by name: redis-py has one for sync and one for asyncio
        tls = any(kind.__name__ == "SSLConnection" for kind in self.kind.__mro__)
        scheme = "rediss" if tls else "redis"
        return f"{scheme}+cluster://{','.join(map(str, self.seeds))}"


class LateCluster(RedisCluster):
    """redis-py's client, which becomes one when something is asked of it."""

    def __init__(self, nodes: NodeOptions, opening: dict[str, Any]) -> None:
        """Nobody is asked yet."""
        self.nodes_of_url = nodes
        self._opening = opening
        self._opened: bool | None = False  # None: it is being opened
        self._turn = new_lock()

    def remake(self, remade: Callable[[type[Any]], type[Any]]) -> None:
        """Make connections of other classes, which `remade` says, before the first use."""
        self.nodes_of_url = self.nodes_of_url._replace(kind=remade(self.nodes_of_url.kind))

        class Pool(redis.ConnectionPool):
            def __init__(self, connection_class: type[Any] = redis.Connection, **kwargs: Any):
                super().__init__(remade(connection_class), **kwargs)

        self._opening["connection_pool_class"] = Pool

    def __getattr__(self, name: str) -> Any:  # for what is not there: before the first use
        if name.startswith("__") or name == "connection_pool":
            raise AttributeError(name)
        with self._turn:
            if self._opened is False:
                self._opened = None
                try:
                    # redis-py asks one master for COMMAND, which may be one that is away
                    super().__init__(**{**self._opening, "retry": Retry(NoBackoff(), OPENING)})
                    self.retry = self._opening["retry"]
                    self._opened = True
                finally:
                    self._opened = bool(self._opened)
            try:
                return vars(self)[name]
            except KeyError:
                raise AttributeError(name) from None

    def close(self) -> None:
        """Close the sockets to all nodes."""
        if self._opened:
            nodes: list[Any] = self.get_nodes()  # type: ignore[no-untyped-call]
            super().close()
            for node in nodes:  # redis-py leaves the sockets of pools that it made to the collector
                node.redis_connection.connection_pool.disconnect()


def open_cluster(url: str, options: dict[str, Any]) -> RedisCluster:
    """A client of the cluster behind a `redis+cluster://` URL. options: of its connections. Raises
    ValueError and TypeError for a URL that cannot be understood."""
    check_redis_py()
    nodes, server = _taken_apart(url, redis.ConnectionPool, options)
    if server.startswith("rediss:"):
        nodes = nodes._replace(kind=TlsConnection)
    others = [ClusterNode(*address) for address in nodes.seeds[1:]]
    opening = {"startup_nodes": others, "url": server, "retry": Retry(NoBackoff(), 0), **options}
    opening.pop("connection_class", None)
    return LateCluster(nodes, opening)


def open_async_cluster(url: str, options: dict[str, Any]) -> redis.asyncio.RedisCluster:
    """Do as `open_cluster` does, for asyncio."""
    from redis.asyncio import ConnectionPool
    from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
    from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
    from redis.asyncio.retry import Retry as AsyncRetry

    check_redis_py()
    nodes, server = _taken_apart(url, ConnectionPool, options)
    opening = {"retry": AsyncRetry(NoBackoff(), 0), **options}
    others = [AsyncClusterNode(*address) for address in nodes.seeds[1:]]
    client: redis.asyncio.RedisCluster = AsyncRedisCluster.from_url(
        server, startup_nodes=others, **opening
    )
    client.nodes_of_url = nodes  # type: ignore[attr-defined]
    return client


def _taken_apart(url: str, pool: Any, options: dict[str, Any]) -> tuple[NodeOptions, str]:
    parts = cluster_url(url)
    made = pool.from_url(parts.server, **options)
    kind, kwargs = made.connection_class, dict(made.connection_kwargs)
    kind(**kwargs)  # made, not opened: what it does not understand is said here
    for name in ("host", "port", "db"):
        kwargs.pop(name, None)
    return NodeOptions(tuple(Address(*node) for node in parts.nodes), kind, kwargs), parts.server


def node_options(client: Any) -> NodeOptions:
    """How a client of a cluster connects to its nodes."""
    if (known := getattr(client, "nodes_of_url", None)) is not None:
        nodes: NodeOptions = known
        return nodes
    seeds = list(client.nodes_manager.startup_nodes.values())
    first = seeds[0]
    if not hasattr(first, "connection_kwargs"):  # those of asyncio alone have them
        first = client.nodes_manager.create_redis_node(
            seeds[0].host, seeds[0].port, **client.nodes_manager.connection_kwargs
        ).connection_pool
    kwargs = dict(first.connection_kwargs)
    for name in ("host", "port", "db"):
        kwargs.pop(name, None)
    addresses = tuple(Address(seed.host, int(seed.port)) for seed in seeds)
    return NodeOptions(addresses, first.connection_class, kwargs)
