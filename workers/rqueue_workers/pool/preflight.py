"""Before the first worker: is there a Redis that may be trusted with jobs?

Of a cluster every master is looked at: a queue may move to any of them.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import replace

import redis
from redis import exceptions as rx
from redis._parsers.helpers import parse_info
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
from rqueue.protocol.advice import describe
from rqueue.protocol.call import Arg
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.result_wait import SHORTEST_WAIT_S
from rqueue.protocol.scripts import SCRIPTS
from rqueue.protocol.slots import slot_of
from rqueue.settings import Settings
from rqueue.transport.cluster import NodeConnection, cluster_of
from rqueue.transport.cluster_client import node_options
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import is_cluster, open_client
from rqueue.transport.resp import readable
from rqueue.transport.routed_connection import connection_for
from rqueue.transport.server_check import ServerFacts, read_facts, server_facts
from rqueue_workers.pool.signals import Inbox

log = logger("rqueue.pool")

PAUSE = 0.2
"""Seconds between attempts."""


def pass_through(settings: Settings, queues: Sequence[str], patience: float, inbox: Inbox) -> bool:
    """Check the server; wait `patience` seconds for one that does not answer or is a replica, and
    as long as it takes for one that loads its data. False when a signal said to end.

    Raises UnusableServer (too old, may evict jobs, refuses the login, or what workers of these
    queues need), or RedisUnavailable. Of a cluster some nodes may be away: what is on the others is
    served.
    """
    assert settings.url is not None
    client = open_client(
        settings.url,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=settings.connect_timeout,
        socket_timeout=settings.connect_timeout,
    )
    until = time.monotonic() + patience
    said: set[str] = set()  # nodes of a cluster, and TLS, take turns in what they say
    look = _of_cluster if is_cluster(client) else _of_server
    try:
        while True:
            patient = time.monotonic() < until
            try:
                found = look(client, settings, queues, patient)
                break
            except RedisUnavailable as error:
                loading = isinstance(error, RedisLoading)
                if not loading and not patient:
                    raise
                if str(error) not in said:
                    said.add(str(error))
                    if loading:
                        log.warning("%s; waiting", error)
                    else:
                        log.warning("%s; waiting at most %g s", describe(error), patience)
            readable([inbox], PAUSE)
            if {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT} & set(inbox.take()):
                return False
    finally:
        client.close()
    for facts in found:
        if facts.problem is not None:
            raise facts.problem
        if facts.warning:
            log.warning("%s", facts.warning)
        if not facts.persistent:
            log.warning(
                "%s%s keeps no append-only file: jobs are lost when it restarts",
                facts.name,
                f" at {facts.url}" if len(found) > 1 else "",
            )
    return True


def _of_server(
    client: redis.Redis, settings: Settings, queues: Sequence[str], _patient: bool
) -> list[ServerFacts]:
    """What one server says of itself, and whether the login suffices. Raises as `pass_through`."""
    facts = server_facts(client)
    _check_ready(facts)
    if facts.problem is None:
        places = [QueueKeys(queue, settings.namespace) for queue in queues]
        check_rights(client, settings.connect_timeout, places)
    return [facts]


def _of_cluster(
    client: redis.Redis, settings: Settings, queues: Sequence[str], patient: bool
) -> list[ServerFacts]:
    """What the masters of a cluster say. patient: all of them are waited for. Raises as
    `pass_through`."""
    cluster = cluster_of(client)
    places = [QueueKeys(queue, settings.namespace) for queue in queues]
    cluster.owner(slot_of(places[0].meta))  # asks the nodes
    found = []
    failures: list[RedisUnavailable] = []
    for address in cluster.slots.addresses():
        connection = NodeConnection(cluster, address, settings.connect_timeout)
        try:
            info = parse_info(connection.command("INFO"))
            facts = replace(read_facts(info, connection.url), mode="standalone")
            _check_ready(facts)
            found.append(facts)
        except RedisUnavailable as error:
            cluster.lost(address)
            failures.append(error)
        finally:
            connection.close()
    if not any(facts.problem for facts in found):
        for keys in places:
            try:
                check_rights(client, settings.connect_timeout, [keys])
            except RedisUnavailable as error:
                failures.append(error)
    if failures and (patient or not found):
        raise failures[0]
    for failure in failures:
        log.warning("%s; the queues there are served when it is back", describe(failure))
    return found


def _check_ready(facts: ServerFacts) -> None:
    """Raise what passes with time."""
    if facts.loading:
        raise RedisLoading("Redis is starting and still loads its data")
    if facts.replica is not None:
        raise facts.replica


def check_rights(client: redis.Redis, timeout: float, places: Sequence[QueueKeys]) -> None:
    """Try what workers do in these queues of one server. Raises AuthenticationFailed, which names
    the rights that are missing: one that is noticed later would leave a script half done."""
    connection = connection_for(client, places[0], timeout)
    try:
        # a server that has all scripts is taught none, until it restarts or drops them
        source = SCRIPTS.script("check_rights").source
        lacking = [] if _may(connection, "SCRIPT", "LOAD", source) else ["script|load"]
        for keys in places:
            refused = connection.run(commands.check_rights(keys), queue=keys.queue)
            lacking.extend(refused)
        wakes = [keys.wake("nobody") for keys in places]
        if not _may(connection, "BLPOP", *wakes, SHORTEST_WAIT_S):
            lacking.append("blpop")
        if lacking:
            user = _user(client)
            queues = ", ".join(f"'{keys.queue}'" for keys in places)
            rights = " ".join(f"+{command}" for command in dict.fromkeys(lacking))
            raise AuthenticationFailed(
                f"the login '{user}' lacks rights in {queues}: ACL SETUSER {user} {rights}",
                url=connection.url,
            )
    except (RedisOutOfMemory, ScriptError) as error:
        log.info("cannot try the rights of the login: %s", error)
    finally:
        connection.close()


def _may(connection: Connection, *command: Arg) -> bool:
    """Whether the login may run a command."""
    try:
        connection.command(*command)
    except rx.ResponseError as error:
        meant = connection.meant(error)
        if not isinstance(meant, AuthenticationFailed):
            raise meant from error
        return False
    return True


def _user(client: redis.Redis) -> str:
    if is_cluster(client):
        options = node_options(client).options
    else:
        options = client.connection_pool.connection_kwargs
    return options.get("username") or "default"
