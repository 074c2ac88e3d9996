"""Queues in all their states, for tests that damage them."""

from collections.abc import Iterator

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from tests.damage.world import WORLDS, World
from tests.support.redis_server import Servers


@pytest.fixture(scope="module")
def worlds(servers: Servers) -> Iterator[dict[str, World]]:
    server: EmbeddedRedis = servers.make("newest").start()
    with redis.Redis.from_url(server.url, socket_timeout=20) as client:
        yield {name: make(client) for name, make in WORLDS.items()}
    server.stop()
