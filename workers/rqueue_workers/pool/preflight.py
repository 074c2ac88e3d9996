"""Before the first worker: is there a Redis that may be trusted with jobs?"""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Sequence

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.errors import (
    AuthenticationFailed,
    RedisLoading,
    RedisOutOfMemory,
    RedisUnavailable,
    ScriptError,
)
from rqueue.logs import logger
from rqueue.protocol import commands
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.result_wait import SHORTEST_WAIT_S
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import open_client
from rqueue.transport.server_check import server_facts
from rqueue_workers.pool.signals import Inbox

log = logger("rqueue.pool")

PAUSE = 0.2
"""Seconds between attempts."""


def pass_through(settings: Settings, queues: Sequence[str], patience: float, inbox: Inbox) -> bool:
    """Check the server; wait `patience` seconds for one that does not answer or is a replica, and
    as long as it takes for one that loads its data. False when a signal said to end.

    Raises UnusableServer (too old, may evict jobs, refuses the login, or what workers of these
    queues need), or RedisUnavailable.
    """
    assert settings.url is not None
    client = open_client(
        settings.url,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=settings.connect_timeout,
        socket_timeout=settings.connect_timeout,
    )
    until = time.monotonic() + patience
    said = ""
    try:
        while True:
            try:
                facts = server_facts(client)
                if facts.loading:
                    raise RedisLoading("Redis is starting and still loads its data")
                if facts.replica is not None:
                    raise facts.replica
                if facts.problem is None:
                    check_rights(client, settings, queues)
                break
            except RedisUnavailable as error:
                loading = isinstance(error, RedisLoading)
                if not loading and time.monotonic() >= until:
                    raise
                if str(error) != said:
                    said = str(error)
                    how_long = "" if loading else f" at most {patience:g} s"
                    log.warning("%s; waiting%s", said, how_long)
            select.select([inbox], (), (), PAUSE)
            if {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT} & set(inbox.take()):
                return False
    finally:
        client.close()
    problem = facts.problem
    if problem is not None:
        raise problem
    if facts.warning:
        log.warning("%s", facts.warning)
    if not facts.persistent:
        log.warning("%s keeps no append-only file: jobs are lost when it restarts", facts.name)
    return True


def check_rights(client: redis.Redis, settings: Settings, queues: Sequence[str]) -> None:
    """Try what workers do. Raises AuthenticationFailed, which names the rights that are missing:
    one that is noticed later would leave a script half done."""
    connection = Connection(client, settings.connect_timeout)
    places = [QueueKeys(queue, settings.namespace) for queue in queues]
    try:
        for keys in places:
            if refused := connection.run(commands.check_rights(keys), queue=keys.queue):
                user = client.connection_pool.connection_kwargs.get("username") or "default"
                rights = " ".join(f"+{command}" for command in refused)
                raise AuthenticationFailed(
                    f"the login '{user}' lacks rights in queue '{keys.queue}': ACL SETUSER {user} "
                    f"{rights}",
                    url=connection.url,
                )
        try:
            connection.command("BLPOP", *(keys.wake("nobody") for keys in places), SHORTEST_WAIT_S)
        except rx.ResponseError as error:
            raise translate(error, url=connection.url) from error
    except (RedisOutOfMemory, ScriptError) as error:
        log.info("cannot try the rights of the login: %s", error)
    finally:
        connection.close()
