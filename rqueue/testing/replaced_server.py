"""A server in memory in the place of all others that a process knows; its time stands still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import time_ns

from rqueue.client import default_queues
from rqueue.errors import LifecycleError
from rqueue.model import signing
from rqueue.protocol.exchange import KNOWN
from rqueue.transport import stand_in
from rqueue.transport.memory.server import MemoryServer, forget, server_of

__all__ = ["replaced_server"]

NAME = "rqueue-test"
"""Of the server in memory: each test begins with a new one."""


@contextmanager
def replaced_server(at_ms: int | None) -> Iterator[tuple[str, MemoryServer]]:
    """Inside of the block this process's queues are in a server in memory, and its clock is that of
    who signs: the server's name, and the server. at_ms: where its clock stands; None: where this
    machine's does. Behind the block all are again where they were, and what is waiting is gone.
    Raises LifecycleError inside of another such block."""
    if stand_in.name_of():
        raise LifecycleError("the queues of this process are in memory already")
    server = server_of(NAME)
    clock = server.clock
    clock.stop(
        (clock.now_us // 1000 if at_ms is None else at_ms) * 1000
    )  # whole ms, as queues count
    known = dict(KNOWN)
    try:
        stand_in.begin(NAME)
        signing.clock_ns = lambda: clock.now_us * 1000
        default_queues.disconnect()
        KNOWN.clear()
        yield NAME, server
    finally:
        stand_in.end()
        signing.clock_ns = time_ns
        default_queues.disconnect()
        forget(NAME)
        KNOWN.clear()
        KNOWN.update(known)
