"""Whether a server is one that rqueue can work with: by its greeting, and by what INFO says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from redis import exceptions as rx

from rqueue import errors
from rqueue.logs import logger
from rqueue.model.confirmation import Confirmation
from rqueue.model.server_url import MEMORY
from rqueue.protocol.commands.server import server_info
from rqueue.protocol.error_mapping import CLUSTER, NO_CLUSTER, translate
from rqueue.text.numbers import many
from rqueue.transport import stand_in
from rqueue.transport.redis_client import aexecute, execute, is_cluster, url_of

if TYPE_CHECKING:
    import redis
    import redis.asyncio

__all__ = [
    "ServerFacts",
    "acheck_confirmable",
    "afirst_look",
    "aserver_facts",
    "check_confirmable",
    "check_greeting",
    "check_refusal",
    "first_look",
    "read_facts",
    "server_facts",
]

log = logger("rqueue")

OLDEST = (6, 2)
"""The oldest server that has what the scripts use (ZMSCORE, LPOP with a count, BLMOVE)."""

WAITAOF_SINCE = (7, 2)
"""The oldest server that says what is on disk."""

SENTINEL = (
    "this is a Sentinel, not the server that keeps the jobs: write its address and the name that "
    "it knows the primary by, as redis+sentinel://HOST:PORT/NAME"
)
REPLICA = (
    "this server is a replica and takes no jobs: use the primary's address, or let Sentinels name "
    "it (redis+sentinel://)"
)


# -- the greeting of each connection ---------------------------------------------------------------


def check_greeting(greeting: Any, url: str, *, of_cluster: bool = False) -> None:
    """Look at the answer to HELLO, in the form of either protocol. Raises WrongServer for a
    Sentinel, and for a node of a cluster where none is meant; `of_cluster`: for all others."""
    if not isinstance(greeting, Mapping):
        greeting = dict(zip(greeting[::2], greeting[1::2], strict=False))
    said = {_text(name): _text(value) for name, value in greeting.items()}
    mode = said.get("mode", "")
    if of_cluster and mode != "sentinel":
        problem = errors.WrongServer(NO_CLUSTER, url=url) if mode == "standalone" else None
    else:
        problem = _mode_problem(mode, url)
    if problem is not None:
        raise problem


def check_refusal(refusal: rx.ResponseError, url: str) -> None:
    """Look at an error instead of a greeting: a login that is missing, or a server that is not
    ready, raises at once. One that may not say HELLO, or does not know it, may do all the same."""
    said = translate(refusal, url=url)
    if isinstance(said, errors.RedisUnavailable) or "NOAUTH" in (
        getattr(refusal, "status_code", None) or str(refusal)
    ):
        raise said from refusal


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _mode_problem(mode: str, url: str = "") -> errors.WrongServer | None:
    if mode == "sentinel":
        return errors.WrongServer(SENTINEL, url=url)
    if mode == "cluster":
        return errors.WrongServer(CLUSTER, url=url)
    return None


# -- what INFO says --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself. `mode`: standalone, cluster or sentinel; `role`: master or
    slave. `persistent`: whether it keeps an append-only file (not known while it is `loading`).
    `replicas`: how many are connected to it."""

    name: str
    version: tuple[int, ...]
    policy: str
    persistent: bool
    mode: str = "standalone"
    role: str = "master"
    loading: bool = False
    url: str = ""
    replicas: int = 0

    @property
    def problem(self) -> errors.UnusableServer | None:
        """Why no worker may start on it, if so."""
        if self.version < OLDEST:
            dotted = ".".join(map(str, self.version))
            return errors.WrongServer(
                f"{self.name} {dotted} is too old; rqueue needs Redis 6.2 or Valkey 7.2",
                url=self.url,
                version=dotted,
            )
        if (wrong := _mode_problem(self.mode, self.url)) is not None:
            return wrong
        if self.policy not in ("noeviction", "") and not self.policy.startswith("volatile-"):
            return errors.EvictionPolicy(self.policy, url=self.url)
        return None

    @property
    def replica(self) -> errors.RedisReadOnly | None:
        """That it is a replica, if so: until it is promoted it takes no jobs."""
        return None if self.role == "master" else errors.RedisReadOnly(REPLICA, url=self.url)

    @property
    def warning(self) -> str:
        """What may go wrong on it although workers may start; "" if nothing."""
        if self.policy.startswith("volatile-"):
            return (
                f"maxmemory-policy is '{self.policy}': when its memory is full, {self.name} may "
                "drop results, the memory of ids that were used, and the notes of Spark writers, "
                f"but no job; {EVICTION_REMEDY}"
            )
        return ""


EVICTION_REMEDY = (
    "to keep them, set it to 'noeviction' (CONFIG SET maxmemory-policy noeviction; for hosted "
    "Redis in the provider's parameter group or instance settings)"
)


def unconfirmable(facts: ServerFacts, confirm: Confirmation) -> errors.RQueueError | None:
    """Why no enqueue is confirmed so on this server, if so: said before anything is stored."""
    at = f"the server at {facts.url}"
    if confirm.fsync and facts.version < WAITAOF_SINCE:
        dotted = ".".join(map(str, facts.version))
        return errors.ConfigError(
            "fsync",
            f"{at} is {facts.name} {dotted}, which does not say what is on disk: Redis 7.2 and "
            "Valkey do (WAITAOF); nothing was stored",
        )
    if confirm.fsync and not facts.persistent:
        return errors.ConfigError(
            "fsync",
            f"{at} has no append-only file, so that nothing is written to disk: set "
            "'appendonly yes'; nothing was stored",
        )
    if confirm.replicas > facts.replicas:
        wanted = many(confirm.replicas, "replica")
        return errors.RedisReadOnly(
            f"an enqueue is to be confirmed by {wanted}, and the server has {facts.replicas} "
            "connected: nothing was stored",
            url=facts.url,
        )
    return None


def read_facts(info: Mapping[str, Any], url: str = "") -> ServerFacts:
    """Read the reply of INFO. A server that hides its policy (managed ones may) has policy ""."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    # Valkey answers redis_version 7.2.4 for compatibility: that is the one to compare
    version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])
    return ServerFacts(
        name,
        version,
        str(info.get("maxmemory_policy", "")),
        bool(info.get("aof_enabled", 0)),
        str(info.get("redis_mode", info.get("server_mode", "standalone"))),
        str(info.get("role", "master")),
        bool(int(info.get("loading", 0))),
        url,
        int(info.get("connected_slaves", 0)),
    )


def server_facts(client: redis.Redis) -> ServerFacts:
    """Ask the server for its version, mode, role and eviction policy. Raises the tree of
    `rqueue.errors`."""
    return _meant(client, read_facts(execute(client, server_info()), url_of(client)))


async def aserver_facts(client: redis.asyncio.Redis) -> ServerFacts:
    """Do as `server_facts` does, on an asyncio client."""
    return _meant(client, read_facts(await aexecute(client, server_info()), url_of(client)))


def _meant(client: Any, facts: ServerFacts) -> ServerFacts:
    """To a client of a whole cluster, that one node is one of many is how it should be."""
    return replace(facts, mode="standalone", role="master") if is_cluster(client) else facts


# -- a client's first look -------------------------------------------------------------------------

_seen: set[str] = set()


def first_look(url: str, facts: Callable[[], ServerFacts]) -> None:
    """Warn in the log, once per server and process, of what a worker would refuse to start on, and
    of what may be dropped. Never raises: the client's own work went well."""
    if url not in _seen:
        _seen.add(url)
        try:
            _warn(facts(), url)
        except errors.RQueueError as error:
            log.info("cannot look at the settings of %s: %s", url, error)


async def afirst_look(url: str, facts: Callable[[], Awaitable[ServerFacts]]) -> None:
    """Do as `first_look` does, for an asyncio client."""
    if url not in _seen:
        _seen.add(url)
        try:
            _warn(await facts(), url)
        except errors.RQueueError as error:
            log.info("cannot look at the settings of %s: %s", url, error)


def _warn(facts: ServerFacts, url: str) -> None:
    if facts.problem is not None:
        log.warning("%s; no worker starts on it", facts.problem)
    elif facts.warning:
        log.warning("%s: %s", url, facts.warning)


# -- what an enqueue can be confirmed by -----------------------------------------------------------


def check_confirmable(url: str, facts: Callable[[], ServerFacts], confirm: Confirmation) -> None:
    """Raise ConfigError or RedisReadOnly where the server cannot confirm an enqueue so: nothing is
    stored then. What is in memory confirms everything."""
    if not _in_memory(url):
        try:
            found = facts()
        except errors.RQueueError as error:
            _check_time(error)
            return  # the enqueue itself says what is wrong
        _refuse(found, confirm)


async def acheck_confirmable(
    url: str, facts: Callable[[], Awaitable[ServerFacts]], confirm: Confirmation
) -> None:
    """Do as `check_confirmable` does, for an asyncio client."""
    if not _in_memory(url):
        try:
            found = await facts()
        except errors.RQueueError as error:
            _check_time(error)
            return
        _refuse(found, confirm)


def _check_time(error: errors.RQueueError) -> None:
    """Raise the error if all the time of the enqueue has passed, which was not sent."""
    if isinstance(error, errors.RedisTimeout) and not error.elsewhere:
        error.outcome_unknown = False
        raise error


def _in_memory(url: str) -> bool:
    return bool(stand_in.name_of()) or url.startswith(MEMORY)


def _refuse(facts: ServerFacts, confirm: Confirmation) -> None:
    if (problem := unconfirmable(facts, confirm)) is not None:
        raise problem
