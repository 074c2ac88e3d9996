"""Clients of redis-py: opened, named in messages; calls run over them, and their errors translated
at the edge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from redis import exceptions as rx
from redis.backoff import FullJitterBackoff
from redis.retry import Retry

from rqueue import errors
from rqueue.model.server_url import MEMORY, is_cluster_url, is_sentinel, spoken
from rqueue.protocol.call import Arg, CommandCall, ScriptCall
from rqueue.protocol.commands.key_reads import read_keys
from rqueue.protocol.commands.key_types import types_met_by
from rqueue.protocol.error_mapping import (
    damaged,
    is_wrong_type,
    moved_on,
    translate,
)
from rqueue.protocol.exchange import Exchange
from rqueue.protocol.keys import queue_of
from rqueue.protocol.repeats import Repeats
from rqueue.protocol.unreachable import not_connected
from rqueue.text.escape import shown
from rqueue.transport import stand_in
from rqueue.transport.cluster_client import (
    check_redis_py,
    node_options,
    open_async_cluster,
    open_cluster,
)
from rqueue.transport.sentinel import open_async_primary, open_primary, sentinels_of
from rqueue.transport.tls import TlsConnection, check_tls, tls_options
from rqueue.transport.vigil import is_replaceable, watch_client

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")

_FAILURES = (rx.RedisError, rx.RedisClusterException, OSError)
"""What redis-py fails with."""

TOGETHER = 100
"""Calls of Redis's own commands that one transaction answers at the most."""


class NotingRetry(Retry):
    """Repeats what broke, and where it then fails otherwise names the first failure too: a
    command whose answer was lost may have been carried out, whatever the answer to its repeat. One
    for which there was no connection was not."""

    def call_with_retry(
        self, do: Callable[[], R], fail: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> R:
        """As redis-py's."""
        first: list[Exception] = []

        def failed(error: Exception, *count: int) -> None:
            if not not_connected(error):
                first.append(error)
            fail(error, *count)
            if isinstance(error, rx.TimeoutError) and not getattr(error, "elsewhere", False):
                raise error  # all the time there is has passed

        try:
            return super().call_with_retry(do, failed, *args, **kwargs)
        except rx.RedisError as error:
            if first and first[0] is not error:
                error.earlier = first[0]  # type: ignore[attr-defined]
            raise


def open_client(url: str, **options: Any) -> redis.Redis:
    """Open a sync client. A command whose connection broke is sent again a few times: all that
    rqueue's client sends may be repeated (an enqueue by its id). Of a `redis+cluster://` URL it is
    redis-py's `RedisCluster`, which asks the nodes at its first use. Raises ConfigError."""
    if not is_cluster_url(url):  # such a client repeats nothing by itself: see `execute`
        options.setdefault("retry", NotingRetry(FullJitterBackoff(base=0.05, cap=1.0), 3))
    if memory := _in_memory(url):
        from rqueue.transport.memory.clients import open_memory_client

        return open_memory_client(memory)
    _fit(url, options)
    if spoken(url).startswith("rediss:"):
        options["connection_class"] = TlsConnection
    client: redis.Redis = _opened(redis.Redis.from_url, open_primary, open_cluster, url, options)
    if is_replaceable(client):
        watch_client(client)
    return client


def open_async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """Open an asyncio client, which repeats nothing by itself. Raises ConfigError."""
    import redis.asyncio
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff

    options.setdefault("retry", AsyncRetry(NoBackoff(), 0))
    if memory := _in_memory(url):
        from rqueue.transport.memory.clients import open_async_memory_client

        return open_async_memory_client(memory)
    _fit(url, options)
    client: redis.asyncio.Redis = _opened(
        redis.asyncio.Redis.from_url, open_async_primary, open_async_cluster, url, options
    )
    return client


def _in_memory(url: str) -> str:
    """The name of the server in memory that a URL leads to, "" for none."""
    scheme, _, name = (stand_in.memory_url() or url).partition("://")
    return name if scheme == MEMORY else ""


def _opened(
    plain: Callable[..., Any],
    behind_sentinels: Callable[[str, dict[str, Any]], Any],
    of_cluster: Callable[[str, dict[str, Any]], Any],
    url: str,
    options: dict[str, Any],
) -> Any:
    if "ssl_" in url:
        check_tls(url)
    try:
        if is_cluster_url(url):
            return of_cluster(url, options)
        if is_sentinel(url):
            client = behind_sentinels(url, options)
        else:
            client = plain(spoken(url), **options)
        # a connection that is made, not opened: what it does not understand is said here
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    except ValueError as error:
        raise errors.ConfigError("url", f"{error}; write redis://host:6379/0") from error
    except TypeError as error:
        unknown = str(error).rpartition(" ")[2]
        said = f"has an option that is not known: {unknown}{tls_options(unknown, url)}"
        raise errors.ConfigError("url", said) from error
    return client


def _fit(url: str, options: dict[str, Any]) -> None:
    # a wait for a result keeps its connection meanwhile
    options.setdefault("max_connections", 10_000)
    if spoken(url).startswith("rediss"):  # redis-py before 6 compares no names by default
        options.setdefault("ssl_check_hostname", "ssl_cert_reqs=none" not in url)
    if url.startswith("unix"):
        options.pop("socket_connect_timeout", None)
    else:
        options.setdefault("socket_keepalive", True)
        options.setdefault("socket_connect_timeout", 5)


def require_bytes(client: Any) -> None:
    """Refuse what is no client of redis-py, or one that decodes replies: envelopes are bytes."""
    # by name: redis-py has one for sync and one for asyncio
    if hasattr(client, "connection_pool") or any(
        kind.__name__ == "RedisCluster" for kind in type(client).__mro__
    ):
        if is_cluster(client):
            check_redis_py()
        if _options_of(client).get("decode_responses"):
            raise errors.ConfigError("redis", "pass a client without decode_responses=True")
    else:
        raise errors.ConfigError("redis", f"{shown(client)} is not a client of redis-py")


def _options_of(client: Any) -> dict[str, Any]:
    """What the connections of a client are made with."""
    pool = getattr(client, "connection_pool", None)
    found: dict[str, Any] = node_options(client).options if pool is None else pool.connection_kwargs
    return found


def url_of(client: Any) -> str:
    """Where a client is connected to, for messages; credentials never show."""
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return node_options(client).url
    kwargs = pool.connection_kwargs
    if name := kwargs.get("memory"):
        return f"{MEMORY}://{name}"
    if path := kwargs.get("path"):
        return f"unix://{path}"
    # by name: redis-py has one for sync and one for asyncio, and no attribute tells them all apart
    tls = any(kind.__name__ == "SSLConnection" for kind in pool.connection_class.__mro__)
    scheme = "rediss" if tls else "redis"
    if (sentinels := sentinels_of(pool)) is not None:
        return f"{scheme}+sentinel://{sentinels}"
    host, port = kwargs.get("host", "localhost"), kwargs.get("port", 6379)
    return f"{scheme}://{host}:{port}/{kwargs.get('db', 0)}"


@contextmanager
def translated(client: Any, *, queue: str = "") -> Iterator[None]:
    """Translate what redis-py raises inside."""
    try:
        yield
    except _FAILURES as error:
        sent = not _never_sent(client, error)
        better = translate(error, url=url_of(client), queue=queue, sent=sent)
        if better is error:
            raise
        _look_up_again(client, better)
        raise better from error


def patience_of(client: Any) -> float | None:
    """Seconds that a reply may take on this client; None: for ever."""
    limit: float | None = _options_of(client).get("socket_timeout")
    return limit


def is_cluster(client: Any) -> bool:
    """Whether it is a client of a whole cluster, which finds the node of each key."""
    return not hasattr(client, "connection_pool")


def execute(client: redis.Redis, call: ScriptCall[R] | CommandCall[R], *, queue: str = "") -> R:
    """Run a call over a client of redis-py and read its reply. Raises the tree of
    `rqueue.errors`."""
    if isinstance(call, CommandCall):
        found: R = execute_all(client, [call])[0]
        return found
    exchange, demoted = Exchange(call, queue), False
    client = stand_in.client_for(client)
    repeats = Repeats() if is_cluster(client) else None
    while True:
        try:
            # redis-py teaches all nodes of a cluster, also those that are away
            node = _node_of(client, call.key) if repeats and exchange.teaches else {}
            reply = client.execute_command(*exchange.command, **node)
        except _FAILURES as error:
            sent = not _never_sent(client, error)
            refusal = exchange.refused(error, url_of(client), sent=sent)
            if refusal is None:
                continue
            if repeats is not None and isinstance(refusal, errors.ServerError):
                _pause(repeats, refusal, error)
                continue
            _look_up_again(client, refusal)
            if demoted or not isinstance(refusal, errors.RedisReadOnly):
                if refusal is error:
                    raise
                raise refusal from error
            demoted = True  # perhaps: then a new connection leads to the new primary
        else:
            if not exchange.goes_on(reply):
                return exchange.answered(reply)


def execute_all(client: redis.Redis, calls: Sequence[CommandCall[R]]) -> list[R]:
    """Run calls of Redis's own commands and read their replies: `TOGETHER` of them are answered in
    one round trip and for one moment, except in a cluster, whose nodes are asked one after the
    other. Raises the tree of `rqueue.errors`."""
    client = stand_in.client_for(client)
    together = 1 if is_cluster(client) else TOGETHER
    found = []
    for start in range(0, len(calls), together):
        part = calls[start : start + together]
        sent = [call.sent() for call in part]
        flat = [words for commands in sent for words in commands]
        replies = iter(_answers(client, part, flat))
        found += [
            call.read([next(replies) for _ in commands])
            for call, commands in zip(part, sent, strict=True)
        ]
    return found


def _answers(
    client: redis.Redis, calls: Sequence[CommandCall[Any]], commands: Sequence[tuple[Arg, ...]]
) -> list[Any]:
    """What the commands of some calls answer. A client of a cluster is asked again a few times:
    they are questions."""
    repeats = Repeats() if is_cluster(client) else None
    key, one_moment = calls[0].key, len(calls) > 1 or calls[0].one_moment
    failures = 0
    while True:
        try:
            with translated(client, queue=queue_of(key)):
                try:
                    node = _node_of(client, key, failures) if repeats else {}
                    return _replies(client, commands, node, transaction=one_moment)
                except rx.OutOfMemoryError as error:
                    if not key or len(commands) < 2 or hasattr(error, "earlier"):
                        raise
                    # a full server queues no command of a transaction, whatever it asks
                    return execute(client, read_keys(key, commands), queue=queue_of(key))
                except rx.ResponseError as error:
                    if not key or not is_wrong_type(error):
                        raise
                    raise _damage_met(client, calls) from error
        except errors.ServerError as error:
            if repeats is None:
                raise
            failures += 1
            silent = isinstance(error, errors.RedisTimeout)
            if silent and not key and failures < len(client.get_primaries()):  # type: ignore[attr-defined]
                continue  # what belongs to no queue another node may answer
            _pause(repeats, error, error)


def _pause(repeats: Repeats, failed: errors.ServerError, said: Exception) -> None:
    """Wait until a call may be sent again. Raises what `Repeats.pause` raises."""
    try:
        pause = repeats.pause(failed)
    except errors.ServerError as error:
        if error is said:
            raise
        raise error from said
    if pause:
        time.sleep(pause)


async def aexecute(client: redis.asyncio.Redis, call: CommandCall[R]) -> R:
    """Run a call of Redis's own commands over an asyncio client of redis-py and read its reply.
    Raises the tree of `rqueue.errors`."""
    if stand_in.name_of():
        found: R = execute(stand_in.client_for(None), call)
        return found
    with translated(client, queue=queue_of(call.key)):
        if len(call.commands) < 2:
            replies = [await client.execute_command(*words) for words in call.sent()]
        else:
            async with client.pipeline(transaction=call.one_moment) as pipe:
                for words in call.sent():
                    pipe.execute_command(*words)
                replies = await pipe.execute()
    return call.read(replies)


def _replies(
    client: Any,
    commands: Sequence[tuple[Arg, ...]],
    node: dict[str, Any],
    *,
    transaction: bool,
) -> list[Any]:
    """What commands answer, in one round trip; raises the first answer that is an error, as it
    came. node: of a cluster, where those go that name no key (`_node_of`)."""
    keyless = any(len(words) == 1 for words in commands)
    if len(commands) < 2 or (keyless and node):
        # a cluster's transaction takes no command that names no key; its node is named instead
        return [
            client.execute_command(*words, **(node if len(words) == 1 else {}))
            for words in commands
        ]
    with client.pipeline(transaction=transaction) as pipe:
        for words in commands:
            pipe.execute_command(*words)
        replies: list[Any] = pipe.execute(raise_on_error=False)
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _node_of(client: Any, key: str, failures: int = 0) -> dict[str, Any]:
    """The option of redis-py that sends a command to the node of a key; without one, to any, each
    time it failed to another one: redis-py's own choice is the same, and may be away."""
    if key:
        return {"target_nodes": client.get_node_from_key(key)}
    nodes = client.get_primaries()
    return {"target_nodes": nodes[failures % len(nodes)]} if nodes else {}


def _damage_met(client: redis.Redis, calls: Sequence[CommandCall[Any]]) -> errors.QueueDamaged:
    """The error of calls that met a key of a wrong type: one more command finds out which."""
    for call in calls:
        try:
            wrong = execute(client, types_met_by(call))
        except errors.RedisUnavailable:
            raise
        except errors.RQueueError:
            wrong = []
        if wrong:
            return damaged(queue_of(call.key), call.key[:-4], wrong)
    return damaged(queue_of(calls[0].key), "", ())


def _never_sent(client: Any, error: Exception) -> bool:
    """Whether a command did not go out at all, since there was no connection. A client of
    the user's own may have sent it in a try before, of which it says nothing."""
    pool = getattr(client, "connection_pool", None)
    ours = pool is not None and isinstance(pool.connection_kwargs.get("retry"), NotingRetry)
    return ours and not_connected(error)


def _look_up_again(client: Any, refusal: Exception) -> None:
    """Where another server may be in charge by now, close the client's idle connections: only a new
    one looks its address up."""
    if moved_on(refusal) and not is_cluster(client):
        client.connection_pool.disconnect(inuse_connections=False)
