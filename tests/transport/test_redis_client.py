"""Every way in which Redis fails has an error of ours."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis import exceptions as rx

from rqueue import errors
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import (
    execute,
    open_async_client,
    open_client,
    translated,
    url_of,
)
from rqueue.transport.server_check import ServerFacts, read_facts, server_facts

SAID = {
    "NOAUTH Authentication required.": errors.AuthenticationFailed,
    "WRONGPASS invalid username-password pair": errors.AuthenticationFailed,
    "NOPERM this user has no permissions": errors.AuthenticationFailed,
    "LOADING Redis is loading the dataset in memory": errors.RedisLoading,
    "READONLY You can't write against a read only replica.": errors.RedisReadOnly,
    "MASTERDOWN Link with MASTER is down": errors.RedisReadOnly,
    "NOREPLICAS Not enough good replicas to write.": errors.RedisReadOnly,
    "MISCONF Redis is configured to save RDB snapshots": errors.RedisReadOnly,
    "OOM command not allowed when used memory > 'maxmemory'.": errors.RedisOutOfMemory,
    "GONE the term of this consumer is over": errors.ConsumerGone,
    "NOCONSUMER no consumer waits": errors.NoConsumer,
    "NOQUEUE there is none of this name": errors.UnknownQueue,
    "SCHEMA this queue was written by another version": errors.WrongServer,
    "unknown command 'EVALSHA'": errors.WrongServer,
}


@pytest.mark.parametrize("said", SAID)
def test_what_a_server_says(said: str) -> None:
    better = translate(rx.ResponseError(said), url="redis://h/0", queue="q", consumer="c")
    assert type(better) is SAID[said]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize(
    "wrapped",
    [
        "@user_script: 374: -{}",
        "ERR Error running script (call to f_0): @user_script:374: @user_script: 374: -{}",
        "Error running script (call to f_0): @user_script:374: {}",
    ],
    ids=["answered by the script (6.2)", "raised (6.2)", "raised"],
)
def test_what_a_server_says_within_a_script(said: str, wrapped: str) -> None:
    error = rx.ResponseError(wrapped.format(said))
    assert type(translate(error, url="redis://h/0", queue="q", consumer="c")) is SAID[said]


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (rx.ConnectionError("refused"), errors.ConnectionLost),
        (ConnectionResetError("reset"), errors.ConnectionLost),
        (rx.TimeoutError("slow"), errors.RedisTimeout),
        (rx.AuthenticationError("no"), errors.AuthenticationFailed),
        (rx.BusyLoadingError("loading"), errors.RedisLoading),
        (rx.InvalidResponse("Protocol Error"), errors.WrongServer),
    ],
)
def test_what_a_connection_does(error: Exception, ours: type[Exception]) -> None:
    assert type(translate(error)) is ours


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "unix:///nowhere/redis.sock"])
def test_what_never_had_a_connection_was_not_done(url: str) -> None:
    """Over our own client; one of the user's own may have sent it in an earlier try."""
    call = commands.cancel(QueueKeys("q"), "x", held=True)
    with open_client(url) as ours, redis.Redis.from_url(url) as theirs:
        for client, unknown in ((ours, False), (theirs, True)):
            with pytest.raises(errors.ConnectionLost) as looked:
                server_facts(client)
            with pytest.raises(errors.ConnectionLost) as called:
                execute(client, call)
            assert {looked.value.outcome_unknown, called.value.outcome_unknown} == {unknown}


def test_an_answer_that_was_lost_stays_so_where_no_connection_follows() -> None:
    """Redis goes away with the answer: what is tried again finds nobody."""
    with (
        EmbeddedRedis() as server,
        open_client(server.url) as client,
        redis.Redis.from_url(server.url) as other,
        other.monitor() as seen,
    ):

        def power_cut() -> None:
            while seen.next_command()["command"].split()[0] != "BLPOP":
                pass
            server.kill()

        with ThreadPoolExecutor(1) as pool:
            cut = pool.submit(power_cut)
            with pytest.raises(errors.ConnectionLost) as caught, translated(client):
                client.blpop(["k"], 0)
            cut.result()
    assert "cannot reach Redis" in str(caught.value)
    assert caught.value.outcome_unknown


def test_what_a_script_refuses_is_named() -> None:
    better = translate(rx.ResponseError("BADARGS no"), script="settle")
    assert isinstance(better, errors.ScriptError)
    assert (better.script, better.reply) == ("settle", "BADARGS no")


def test_what_is_ours_or_nobodys_stays() -> None:
    ours = errors.UnknownJob("x")
    assert translate(ours) is ours
    nobodys = rx.DataError("not a reply of Redis")
    assert translate(nobodys) is nobodys


def test_a_server_that_may_evict_or_is_too_old_is_a_problem() -> None:
    good = read_facts({"redis_version": "6.2.14", "maxmemory_policy": "noeviction"})
    assert good == ServerFacts("Redis", (6, 2), "noeviction", False)
    assert good.problem is None
    old = read_facts({"redis_version": "6.0.20", "maxmemory_policy": "noeviction"})
    assert isinstance(old.problem, errors.WrongServer)
    evicts = read_facts({"redis_version": "7.2.4", "maxmemory_policy": "allkeys-lru"})
    assert isinstance(evicts.problem, errors.EvictionPolicy)
    hidden = read_facts({"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    assert hidden.name == "Valkey"
    assert hidden.problem is None


@pytest.mark.parametrize("opened", [open_client, open_async_client])
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@h:1/2", "redis://h:1/2"),
        ("rediss://user:secret@h:1/2?ssl_cert_reqs=none", "rediss://h:1/2"),
        ("unix://user:secret@/run/r.sock", "unix:///run/r.sock"),
        ("redis+sentinel://user:secret@h:1/name", "redis+sentinel://h:1/name/0"),
        ("rediss+sentinel://user:secret@h:1/name", "rediss+sentinel://h:1/name/0"),
    ],
)
def test_a_client_is_shown_as_its_url(opened: Callable[[str], Any], url: str, shown: str) -> None:
    """The sync and the asyncio one, without the login."""
    assert url_of(opened(url)) == shown


def test_a_server_that_hangs_is_given_its_time_once(private_server: EmbeddedRedis) -> None:
    """Who looks at it, the command line too, waits as long as one answer may take: not twice."""
    limit = 2.0
    with open_client(private_server.url, socket_timeout=limit) as client:
        assert execute(client, commands.counts(QueueKeys("q"))).ready == 0
        os.kill(private_server.pid, signal.SIGSTOP)
        try:
            since = time.monotonic()
            with pytest.raises(errors.RedisTimeout):
                execute(client, commands.counts(QueueKeys("q")))
            assert limit <= time.monotonic() - since < 2 * limit
        finally:
            os.kill(private_server.pid, signal.SIGCONT)
