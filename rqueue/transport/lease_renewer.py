"""Renewing leases: from a thread beside a lone consumer, or from a pool's supervisor."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Sequence

import redis

from rqueue.errors import ConnectionLost, RedisTimeout, RQueueError
from rqueue.logs import logger
from rqueue.model.connection_state import ConnectionStates
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Renewed
from rqueue.protocol.crash_report import log_died
from rqueue.protocol.forwarding import forward_soon
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scheduling import refill_soon
from rqueue.transport.routed_connection import connection_for

log = logger("rqueue")


def renewal_interval(lease_ms: int) -> float:
    """Seconds between renewals: three tries fit into a lease, the third before it ends."""
    return lease_ms * 0.3 / 1000


class RenewalPace:
    """When a lease is to be renewed next. A renewal that failed is repeated soon, less soon each
    time: two connections that were cut must not cost a lease. Redis is back for a small part of a
    lease at most before a try finds it. No I/O."""

    FIRST_DELAY, LONGEST_DELAY = 0.05, 1.0
    """Seconds between tries that fail: doubled from the first to the second, which is less where
    leases are short."""

    def __init__(self, lease_ms: int) -> None:
        self.interval = renewal_interval(lease_ms)
        self.answer_within = min(15.0, max(1.0, self.interval))
        """Seconds after which a try without an answer has failed: there is time for another."""
        self.probe_every = max(1.0, lease_ms / 10_000)
        """Seconds without a word after which it is asked whether the server is still there, where
        another one may have taken its place; and seconds that the answer may take."""
        self._longest = min(self.LONGEST_DELAY, self.interval / 5)
        self._failures = 0

    def answered(self, renewed: Renewed) -> float:
        """Seconds to wait; none while there is more to reclaim, which is done in steps."""
        self.succeeded()
        return 0.0 if renewed.more else self.interval

    def succeeded(self) -> None:
        """Take it that Redis is there."""
        self._failures = 0

    def failed(self) -> float:
        """Seconds to wait."""
        delay = min(self._longest, self.FIRST_DELAY * 2 ** min(self._failures, 10))
        self._failures += 1
        return float(delay * random.uniform(0.5, 1.0))

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0


class LeaseRenewer:
    """Renews the leases of some consumers of one queue from a daemon thread of this process.

    A job that holds the interpreter lock for longer than a lease stops this thread too: the lease
    ends, the job is delivered to another consumer, and its settle is refused. Workers of a pool do
    not have that weakness: their supervisor renews, and runs no user code (H-14).

    renewed: called after each renewal, by its thread; silent: when one found no server, or had no
    answer in time. They raise nothing.
    `ended`: no lease is left to renew. Its file descriptor is readable then, which ends the wait of
    a `WakeListener`.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys: QueueKeys,
        consumers: Sequence[str],
        lease_ms: int,
        states: ConnectionStates,
        renewed: Callable[[], None],
        silent: Callable[[], None],
    ) -> None:
        self._pace = RenewalPace(lease_ms)
        self._connection = connection_for(client, keys, self._pace.answer_within)
        self._keys = keys
        self._consumers = list(consumers)
        self._lease_ms = lease_ms
        self._states = states
        self._renewed = renewed
        self._silent = silent
        self.ended = False
        self._stopping = threading.Event()
        self._told, self._tell = socket.socketpair()
        self._thread = threading.Thread(target=self._loop, name="rqueue-renew", daemon=True)

    def fileno(self) -> int:
        """Readable once all leases have ended."""
        return self._told.fileno()

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no more; the leases end by themselves unless the consumers leave."""
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=1)
        self._told.close()

    def _loop(self) -> None:
        with self._tell:  # closing it makes the other end readable
            self._renew()
        self._connection.close()

    def _renew(self) -> None:
        pause = self._pace.interval
        while not self._stopping.wait(pause):
            try:
                renewed = self._connection.run(
                    commands.renew(self._keys, self._lease_ms, self._consumers)
                )
            except RQueueError as error:  # a damaged queue too may be repaired
                self._states.fails(error)
                if not self._pace.failing:
                    log.warning("cannot renew leases in queue %s: %s", self._keys.queue, error)
                    if isinstance(error, ConnectionLost | RedisTimeout):
                        self._silent()
                pause = self._pace.failed()
                continue
            pause = self._pace.answered(renewed)
            log_died(log, self._keys.queue, renewed.died)
            if renewed.outgoing:
                forward_soon(self._connection.run, self._keys)
            if renewed.lacking:
                run, names = self._connection.run, renewed.lacking
                refill_soon(run, self._keys, names)
            for name in renewed.gone:
                self._consumers.remove(name)
                log.warning("the lease of consumer %s in queue %s ended", name, self._keys.queue)
            if not self._consumers:
                self.ended = True
                self._states.loses()
                return
            self._states.works()
            self._renewed()
