from collections.abc import Iterator

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from tests.transport.memory.both_servers import BothServers


@pytest.fixture
def both(server: EmbeddedRedis) -> Iterator[BothServers]:
    """A real server and one in memory."""
    with redis.Redis.from_url(server.url, protocol=2) as real:
        both = BothServers(real)
        yield both
        both.begin()
