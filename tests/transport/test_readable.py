"""Waiting until something can be read."""

import fcntl
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from rqueue.transport.resp import readable


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_what_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    assert readable([left, right.fileno()], 0.0) == []
    left.send(b"x")
    assert readable([left, right], None) == [right]
    right.send(b"y")
    assert set(readable([left, right.fileno()], 60.0)) == {left, right.fileno()}


def test_the_end_of_a_connection_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    right.close()
    assert readable([left], 60.0) == [left]


def test_a_descriptor_that_is_closed(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    number = os.dup(left.fileno())
    os.close(number)
    with pytest.raises(OSError, match="is closed"):
        readable([right, number], 60.0)
    right.close()
    with pytest.raises(ValueError):
        readable([right], 60.0)


def test_any_descriptor_will_do(pair: tuple[socket.socket, socket.socket]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    high = fcntl.fcntl(pair[0].fileno(), fcntl.F_DUPFD, 1500)
    try:
        pair[1].send(b"x")
        assert readable([high], 60.0) == [high]
    finally:
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
