"""A connection that was interrupted gives nobody another command's reply."""

import signal
from types import FrameType

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.transport.connection import Connection


class Interrupted(BaseException):
    """As KeyboardInterrupt is: no error of the connection."""


@pytest.fixture
def connection(server: EmbeddedRedis) -> Connection:
    return Connection(redis.Redis.from_url(server.url))


def test_an_interrupted_command_leaves_no_reply_behind(connection: Connection) -> None:
    def strike(_signal: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, strike)
    try:
        connection.send(("BLPOP", "nobody pushes here", 1))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupted):
            connection.read()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not connection.connected
    assert connection.command("ECHO", "mine") == b"mine"
    connection.close()
