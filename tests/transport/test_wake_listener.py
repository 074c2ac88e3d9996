"""Waiting for wake-ups: a connection that is silent for too long, and several at once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisReadOnly
from rqueue.transport import wake_listener
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import open_client
from rqueue.transport.wake_listener import WakeListener, first_readable
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A file descriptor to read from, which ends a wait, and the one to write to."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def _listener(client: redis.Redis, name: str) -> WakeListener:
    made = WakeListener(Connection(client, None))
    made.add(name, f"wake:{name}")
    return made


def test_a_connection_that_says_nothing_any_more_is_given_up(
    server: EmbeddedRedis, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other end is gone and nobody says so: what was sent over it meanwhile is lost."""
    monkeypatch.setattr(wake_listener, "LISTEN_S", 1)
    monkeypatch.setattr(wake_listener, "SLACK_S", 0.2)
    with Proxy(server.url.removeprefix("unix://")) as proxy, open_client(proxy.url) as client:
        listener = _listener(client, queue_name)
        assert listener.wait(0) == []
        proxy.hold()
        assert listener.wait(None) == []
        assert listener.socket is None, "there is something to do: connect anew"
        proxy.release()
        assert [wake.kind for wake in listener.wait(PATIENCE)] == ["reconnected"]
        client.rpush(f"wake:{queue_name}", b"w")
        assert [wake.kind for wake in listener.wait(PATIENCE)] == ["pull"]
        listener.close()


def test_of_several_listeners_the_one_that_hears_is_named(
    client: redis.Redis, queue_name: str, pipe: tuple[int, int]
) -> None:
    names = [f"{queue_name}-{number}" for number in range(3)]
    listeners = [_listener(client, name) for name in names]
    assert first_readable(listeners, None, pipe[0]) == listeners, "none waits yet"
    assert [listener.wait(0) for listener in listeners] == [[], [], []]
    client.rpush(f"wake:{names[1]}", b"w")
    assert first_readable(listeners, PATIENCE, pipe[0]) == [listeners[1]]
    assert [wake.consumer for wake in listeners[1].wait(0)] == [names[1]]
    assert first_readable(listeners, PATIENCE, pipe[0]) == [listeners[1]], "it waits no more"
    assert listeners[1].wait(0) == []
    os.write(pipe[1], b"!")
    assert first_readable(listeners, PATIENCE, pipe[0]) == []
    for listener in listeners:
        listener.close()


def test_a_wait_that_is_ended_again_and_again_is_no_loop_without_a_pause(
    client: redis.Redis, queue_name: str
) -> None:
    """The first time that says no more than that the queue is elsewhere now."""
    listener = _listener(client, queue_name)

    def unblock() -> None:
        (number,) = (
            one["id"] for one in client.client_list() if int(one["fd"]) and one["cmd"] == "blpop"
        )
        client.client_unblock(int(number), error=True)

    assert listener.wait(0) == []
    unblock()
    assert listener.wait(PATIENCE) == []
    assert [wake.kind for wake in listener.wait(PATIENCE)] == ["reconnected"]
    unblock()
    with pytest.raises(RedisReadOnly):
        listener.wait(PATIENCE)
    listener.close()
