"""Connections to Redis: opened, checked, and their errors translated at the edge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from redis import exceptions as rx
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from rqueue import errors, scripts
from rqueue.escape import shown
from rqueue.logs import logger
from rqueue.store.call import Call

if TYPE_CHECKING:
    import redis.asyncio

R = TypeVar("R")

log = logger("rqueue")

OLDEST = (6, 2)
"""The oldest server that has what the scripts use (ZMSCORE, LPOP with a count, BLMOVE)."""

_READONLY = ("READONLY", "MASTERDOWN", "NOREPLICAS", "MISCONF")
_WRAPPED = re.compile(r"Error running script .*user_script: ?\d+: -([A-Z]+ .*)", re.DOTALL)
_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")


def open_client(url: str, **options: Any) -> redis.Redis:
    """Open a sync client. A command whose connection broke is sent again a few times: all that
    rqueue's client sends may be repeated (an enqueue by its id)."""
    options.setdefault("retry", Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), 3))
    _fit(url, options)
    try:
        return redis.Redis.from_url(url, **options)
    except ValueError as error:
        raise errors.ConfigError("url", f"{error}; write redis://host:6379/0") from error


def open_async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """Open an asyncio client; see `open_client`."""
    import redis.asyncio
    from redis.asyncio.retry import Retry as AsyncRetry

    options.setdefault("retry", AsyncRetry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), 3))
    _fit(url, options)
    try:
        return redis.asyncio.Redis.from_url(url, **options)
    except ValueError as error:
        raise errors.ConfigError("url", f"{error}; write redis://host:6379/0") from error


def _fit(url: str, options: dict[str, Any]) -> None:
    # whoever waits for a result has a connection meanwhile
    options.setdefault("max_connections", 10_000)
    if url.startswith("unix"):
        options.pop("socket_connect_timeout", None)
    else:
        options.setdefault("socket_keepalive", True)
        options.setdefault("socket_connect_timeout", 5)


def require_bytes(client: Any) -> None:
    """Refuse what is no client of redis-py, or one that decodes replies: envelopes are bytes."""
    if not hasattr(client, "connection_pool"):
        raise errors.ConfigError("redis", f"{shown(client)} is not a client of redis-py")
    if client.connection_pool.connection_kwargs.get("decode_responses"):
        raise errors.ConfigError("redis", "pass a client without decode_responses=True")


def url_of(client: Any) -> str:
    """Where a client is connected to, for messages; credentials never show."""
    kwargs = client.connection_pool.connection_kwargs
    if path := kwargs.get("path"):
        return f"unix://{path}"
    host, port = kwargs.get("host", "localhost"), kwargs.get("port", 6379)
    return f"redis://{host}:{port}/{kwargs.get('db', 0)}"


def translate(
    error: Exception, *, url: str = "", script: str = "", queue: str = "", consumer: str = ""
) -> Exception:
    """The rqueue error for one of redis-py's; what is not Redis's own comes back as it is."""
    if isinstance(error, errors.RQueueError):
        return error
    said = str(error)
    # Redis 6.2 wraps what a command says inside a script
    if (wrapped := _WRAPPED.match(said)) is not None:
        said = wrapped[1]
    word = said.partition(" ")[0]
    if isinstance(error, rx.AuthenticationError | rx.AuthorizationError | rx.NoPermissionError) or (
        word in _DENIED
    ):
        return errors.AuthenticationFailed(f"Redis refuses the login: {said}", url=url)
    if isinstance(error, rx.BusyLoadingError) or word == "LOADING":
        return errors.RedisLoading("Redis is starting and still loads its data", url=url)
    if isinstance(error, rx.ReadOnlyError | rx.MasterDownError) or word in _READONLY:
        return errors.RedisReadOnly(f"Redis takes no writes now: {said}", url=url)
    if isinstance(error, rx.OutOfMemoryError) or word == "OOM":
        return errors.RedisOutOfMemory("Redis reached its maxmemory and stored nothing", url=url)
    if isinstance(error, rx.TimeoutError | TimeoutError):
        return errors.RedisTimeout(f"no answer from Redis in time: {said}", url=url)
    if isinstance(error, rx.InvalidResponse):
        return errors.WrongServer(f"what answers is no Redis: {said}", url=url)
    if isinstance(error, rx.ConnectionError | OSError):
        return errors.ConnectionLost(f"cannot reach Redis: {said}", url=url)
    if isinstance(error, rx.ResponseError):
        if word == "NOCONSUMER":
            return errors.NoConsumer(queue)
        if word == "GONE":
            return errors.ConsumerGone(consumer, queue=queue)
        if word == "CONFLICT":
            return errors.ConfigError("priorities", said.partition(" ")[2])
        if word == "SCHEMA":
            return errors.WrongServer(said.partition(" ")[2], url=url)
        if script:
            place = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            return errors.ScriptError(script, said + place)
        if "unknown command" in said:
            return errors.WrongServer(f"this is no Redis 6.2 or later: {said}", url=url)
    return error


@contextmanager
def translated(client: Any, **about: str) -> Iterator[None]:
    """Translate what redis-py raises inside."""
    try:
        yield
    except (rx.RedisError, OSError) as error:
        better = translate(error, url=url_of(client), **about)
        if better is error:
            raise
        raise better from error


def patience_of(client: Any) -> float | None:
    """Seconds that a reply may take on this client; None: for ever."""
    limit: float | None = client.connection_pool.connection_kwargs.get("socket_timeout")
    return limit


def execute(client: redis.Redis, call: Call[R], **about: str) -> R:
    """Run a call and read its reply. Raises the tree of `rqueue.errors`."""
    try:
        return call.read(scripts.run(client, call.script, call.keys, call.args))
    except (rx.RedisError, OSError) as error:
        better = translate(error, url=url_of(client), script=call.script, **about)
        if better is error:
            raise
        raise better from error


async def aexecute(client: redis.asyncio.Redis, call: Call[R], **about: str) -> R:
    """Do as `execute` does, on an asyncio client."""
    try:
        return call.read(await scripts.arun(client, call.script, call.keys, call.args))
    except (rx.RedisError, OSError) as error:
        better = translate(error, url=url_of(client), script=call.script, **about)
        if better is error:
            raise
        raise better from error


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself."""

    name: str
    version: tuple[int, ...]
    policy: str
    persistent: bool

    @property
    def problem(self) -> errors.UnusableServer | None:
        """Why no worker may start on it, if so."""
        if self.version < OLDEST:
            dotted = ".".join(map(str, self.version))
            return errors.WrongServer(
                f"{self.name} {dotted} is too old; rqueue needs Redis 6.2 or Valkey 7.2",
                version=dotted,
            )
        if self.policy not in ("noeviction", ""):
            return errors.EvictionPolicy(self.policy)
        return None


def read_facts(info: dict[str, Any]) -> ServerFacts:
    """Read the reply of INFO. A server that hides its policy (managed ones may) has policy ""."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    # Valkey answers redis_version 7.2.4 for compatibility: that is the one to compare
    version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])
    return ServerFacts(
        name, version, str(info.get("maxmemory_policy", "")), bool(info.get("aof_enabled", 0))
    )


def server_facts(client: redis.Redis) -> ServerFacts:
    """Ask the server for its version and eviction policy. Raises the tree of `rqueue.errors`."""
    with translated(client):
        return read_facts(client.info())


async def aserver_facts(client: redis.asyncio.Redis) -> ServerFacts:
    """Do as `server_facts` does, on an asyncio client."""
    with translated(client):
        return read_facts(await client.info())


_seen: set[str] = set()


def first_look(client: redis.Redis) -> None:
    """Warn in the log, once per server and process, of what a worker would refuse to start on:
    a server that is too old or may evict jobs. Never raises: the client's own work went well."""
    if (url := url_of(client)) not in _seen:
        _seen.add(url)
        try:
            _warn(server_facts(client), url)
        except (errors.RQueueError, rx.RedisError) as error:
            log.info("cannot look at the settings of %s: %s", url, error)


async def afirst_look(client: redis.asyncio.Redis) -> None:
    """Do as `first_look` does, on an asyncio client."""
    if (url := url_of(client)) not in _seen:
        _seen.add(url)
        try:
            _warn(await aserver_facts(client), url)
        except (errors.RQueueError, rx.RedisError) as error:
            log.info("cannot look at the settings of %s: %s", url, error)


def _warn(facts: ServerFacts, url: str) -> None:
    if facts.problem is not None:
        log.warning("%s: %s; no worker starts on it", url, facts.problem)
