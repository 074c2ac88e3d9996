"""Before the first worker: is there a Redis that may be trusted with jobs?"""

from __future__ import annotations

import select
import signal
import time

from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.connection import open_client
from rqueue.errors import RedisLoading, RedisUnavailable
from rqueue.logs import logger
from rqueue.server_check import server_facts
from rqueue.settings import Settings
from rqueue_workers.signals import Inbox

log = logger("rqueue.pool")

PAUSE = 0.2
"""Seconds between attempts."""


def pass_through(settings: Settings, patience: float, inbox: Inbox) -> bool:
    """Check the server; wait `patience` seconds for one that does not answer or is a replica, and
    as long as it takes for one that loads its data. False when a signal said to end.

    Raises UnusableServer (too old, may evict jobs, refuses the login), or RedisUnavailable.
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
