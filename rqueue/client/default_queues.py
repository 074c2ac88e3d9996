"""The process's own queues: where tasks go that name no sender, and what `rqueue.queue` returns.

With RQUEUE_URL set nothing else is needed. `configure` sets another place, without connecting;
`connect` does too and looks at the server. There is one connection pool for the process, and one
for each event loop; queues are made once per name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

import redis

from rqueue.client._sync.queue import SIBLINGS_MAX, Queue
from rqueue.errors import ConfigError, EvictionPolicy
from rqueue.model.locks import new_lock
from rqueue.settings import Settings
from rqueue.tasks.other_words import with_known_options
from rqueue.transport.redis_client import require_bytes
from rqueue.transport.server_check import server_facts

if TYPE_CHECKING:
    import redis.asyncio

    from rqueue.client._async.queue import AsyncQueue

__all__ = ["QUEUES", "adisconnect", "aqueue", "configure", "connect", "disconnect", "queue"]

_lock = new_lock()
_settings: Settings | None = None
_client: redis.Redis | None = None
_async_client: redis.asyncio.Redis | None = None
_async_roots: dict[asyncio.AbstractEventLoop, AsyncQueue] = {}
_keepers: dict[AsyncQueue, tuple[asyncio.AbstractEventLoop, AsyncGenerator[None, None]]] = {}


class _Queues(dict[str, Queue]):
    """The process's queues by name: each is made when it is looked up first. Raises ConfigError
    then where nothing says where Redis is."""

    def __missing__(self, name: str) -> Queue:
        with _lock:
            root = self.get("default")
            if root is None:
                root = self.setdefault("default", Queue(redis=_client, settings=_settings))
            found = root.at(name)
            return self.setdefault(name, found) if len(self) < SIBLINGS_MAX else found


QUEUES = _Queues()


@with_known_options("rqueue.configure")
def configure(
    url: str | None = None,
    *,
    redis: redis.Redis | None = None,
    async_redis: redis.asyncio.Redis | None = None,
    namespace: str | None = None,
    signing_keys: dict[str, str] | None = None,
    settings: Settings | None = None,
) -> None:
    """Say where the process's queues are, in place of RQUEUE_URL; connects to nothing.

    url, namespace, signing_keys: as for `Queue`; settings: all of them at once. redis, async_redis:
    open clients instead of a url (async_redis is of one loop). What was configured before is
    closed; queues that others hold go on with their own. Raises ConfigError.
    """
    global _settings, _client, _async_client
    given = Settings.of(settings, url=url, namespace=namespace, signing_keys=signing_keys)
    for client in (redis, async_redis):
        if client is not None:
            require_bytes(client)
    disconnect()
    with _lock:
        _settings, _client, _async_client = given, redis, async_redis


def connect(
    url: str | None = None,
    *,
    redis: redis.Redis | None = None,
    namespace: str | None = None,
    signing_keys: dict[str, str] | None = None,
    settings: Settings | None = None,
) -> Queue:
    """Configure, connect now, and return the default queue.

    Raises ConfigError, the server errors, WrongServer for a server that is too old, a Sentinel or
    a node of a cluster, and RedisReadOnly for a replica.
    """
    configure(url, redis=redis, namespace=namespace, signing_keys=signing_keys, settings=settings)
    found = queue()
    facts = server_facts(found.redis)
    problem = facts.replica or facts.problem
    if problem is not None and not isinstance(problem, EvictionPolicy):
        raise problem
    return found


def queue(name: str = "default") -> Queue:
    """The process's queue of this name. Raises ConfigError when nothing says where Redis is."""
    return QUEUES[name]


def aqueue(name: str = "default") -> AsyncQueue:
    """The running event loop's queue of this name; closed when the loop ends.

    Raises ConfigError when nothing says where Redis is, and RuntimeError outside of a loop.
    """
    loop = asyncio.get_running_loop()
    root = _async_roots.get(loop)
    if root is None:
        from rqueue.client._async.queue import AsyncQueue

        _forget_closed_loops()
        if _client is not None and _async_client is None:
            raise ConfigError("async_redis", "rqueue.configure was given a sync client only")
        root = _async_roots[loop] = AsyncQueue(redis=_async_client, settings=_settings)
        keeper = _close_with_loop(loop, root)
        with suppress(StopIteration):
            keeper.__anext__().send(None)  # runs it to its yield, and makes it known to the loop
        _keepers[root] = loop, keeper
    return root.at(name)


async def _close_with_loop(
    loop: asyncio.AbstractEventLoop, root: AsyncQueue
) -> AsyncGenerator[None, None]:
    # asyncio.run and its like finish a loop's open asynchronous generators: no other event
    # comes before a loop ends
    try:
        yield
    finally:
        _keepers.pop(root, None)
        if _async_roots.get(loop) is root:
            del _async_roots[loop]
        await root.close()


def _forget_closed_loops() -> None:
    for loop in [loop for loop in _async_roots if loop.is_closed()]:
        del _async_roots[loop]
    for root in [root for root, (loop, _) in _keepers.items() if loop.is_closed()]:
        del _keepers[root]


def disconnect() -> None:
    """Close the process's connections; the next use opens new ones. Those of running event loops
    are closed when the loop ends."""
    with _lock:
        root = QUEUES.get("default")
        QUEUES.clear()
        _async_roots.clear()
    if root is not None:
        root.close()


async def adisconnect() -> None:
    """Close the connections of the running event loop; the next use opens new ones. Without it they
    are closed when the loop ends."""
    root = _async_roots.get(asyncio.get_running_loop())
    if root is not None:
        _, keeper = _keepers[root]
        await keeper.aclose()
