"""A script without an end: Redis answers BUSY to everybody meanwhile."""

import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from rqueue.embedded.server import EmbeddedRedis


@contextmanager
def busy(server: EmbeddedRedis) -> Iterator[None]:
    """Keep a server busy for as long as the block lasts."""
    ended: list[str] = []

    def spin() -> None:
        with redis.Redis.from_url(server.url, socket_timeout=None) as client:
            try:
                client.eval("while true do end", 0)
            except redis.ResponseError as error:
                ended.append(str(error))

    with redis.Redis.from_url(server.url) as client:
        client.config_set("lua-time-limit", 10)
        thread = threading.Thread(target=spin)
        thread.start()
        deadline = time.monotonic() + 10
        pause = select.poll()
        while not _refuses(client):
            assert time.monotonic() < deadline, "the server is not busy"
            pause.poll(5)
        try:
            yield
        finally:
            client.script_kill()
            thread.join(10)
    assert "killed" in ended[0]


def _refuses(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False
