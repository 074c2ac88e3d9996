import pytest

from rqueue.embedded.binaries import ServerBinary
from tests.support.redis_server import Servers


@pytest.fixture
def binary(servers: Servers, server_name: str) -> ServerBinary:
    return servers.binary(server_name)
