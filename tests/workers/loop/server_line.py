"""The stage's own line to the server: what redis-py does around a command costs more than the
command, and a play asks thousands of times."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from rqueue.transport.resp import RespSocket

ANSWER_S = 20.0


class ServerLine:
    """Tells the queues the time, and waits for the server's turns."""

    def __init__(self, client: redis.Redis) -> None:
        pool = client.connection_pool  # which counts what it makes, and stops at a number
        self._inner = pool.connection_class(**pool.connection_kwargs)
        self._inner.connect()
        self._socket = RespSocket(self._inner._sock, ANSWER_S, self._inner._parser.parse_error)

    def tell(self, clocks: Sequence[str], ms: int) -> None:
        """Set the clock in the hash at each of these keys."""
        self._socket.send(*(("HSET", key, "clock", ms) for key in clocks))
        for _ in clocks:
            self._socket.read()

    def catch_up(self) -> None:
        """Wait until the server has read what was sent so far, and what it wrote to others on that
        account has arrived: the next look sees the same in each run."""
        self._socket.ask(("PING",))
        self.end_turn()

    def end_turn(self) -> None:
        """The second half of it, behind an answer: others of its turn may be written after it."""
        self._socket.ask(("PING",))

    def close(self) -> None:
        self._inner.disconnect()
