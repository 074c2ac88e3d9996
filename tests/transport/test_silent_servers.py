"""A server that gives no answer is waited for once by the clients that are watched."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
import redis

from rqueue import errors
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.commands.server import ping
from rqueue.protocol.unreachable import silent_server
from rqueue.transport import silent_servers
from rqueue.transport.redis_client import execute, open_client
from rqueue.transport.silent_servers import SilentServers

LIMIT_S = 0.5


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(silent_servers, "SAY_AFTER_S", LIMIT_S / 5)
    return []


@pytest.fixture
def watched(private_server: EmbeddedRedis, said: list[str]) -> Iterator[redis.Redis]:
    client = open_client(private_server.tcp_url, socket_timeout=LIMIT_S)
    with client:
        yield SilentServers(said.append).watch(client)


def waited(client: redis.Redis) -> tuple[float, errors.RedisTimeout]:
    since = time.monotonic()
    with pytest.raises(errors.RedisTimeout) as caught:
        execute(client, ping())
    return time.monotonic() - since, caught.value


@pytest.mark.parametrize("before", [True, False], ids=["open", "not-open"])
def test_it_is_waited_for_once_and_named_once(
    before: bool, watched: redis.Redis, private_server: EmbeddedRedis, said: list[str]
) -> None:
    """Whether it hangs while a connection is there, or before there is one."""
    address = private_server.tcp_url.removeprefix("redis://").removesuffix("/0")
    if before:
        execute(watched, ping())
    os.kill(private_server.pid, signal.SIGSTOP)
    try:
        first, error = waited(watched)
        assert LIMIT_S <= first < 2 * LIMIT_S
        again, same = waited(watched)
        assert again < LIMIT_S / 2
        assert silent_server(error) == silent_server(same) == address
        assert str(same).startswith(f"no answer from {address} (")
        assert said == [address]
    finally:
        os.kill(private_server.pid, signal.SIGCONT)


def test_who_follows_asks_again_without_a_word(
    private_server: EmbeddedRedis, said: list[str]
) -> None:
    servers = SilentServers(said.append)
    with open_client(private_server.tcp_url, socket_timeout=LIMIT_S) as client:
        servers.watch(client)
        os.kill(private_server.pid, signal.SIGSTOP)
        try:
            waited(client)
            said.clear()
            servers.forget()
            again, error = waited(client)
            assert again >= LIMIT_S
            assert silent_server(error) and said == []
        finally:
            os.kill(private_server.pid, signal.SIGCONT)
        execute(client, ping())


def test_a_server_that_answers_late_is_named_and_heard(
    watched: redis.Redis, private_server: EmbeddedRedis, said: list[str]
) -> None:
    execute(watched, ping())
    with open_client(private_server.tcp_url) as other:
        other.execute_command("CLIENT", "PAUSE", int(LIMIT_S * 500), "ALL")
        execute(watched, ping())
    assert len(said) == 1
