"""Whether Redis can be reached, as a client, a consumer or a worker saw it last, and listeners."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from time import monotonic

from rqueue.errors import RedisOutOfMemory, RedisUnavailable
from rqueue.logs import logger
from rqueue.model.locks import new_lock

__all__ = ["ConnectionState", "ConnectionStates", "StateListener"]

log = logger("rqueue")


class ConnectionState(StrEnum):
    """suspended: Redis cannot be reached; what is held is still held, what is enqueued waits or
    fails. lost: the lease ended, or nothing was heard for longer than it lasts: other consumers may
    have the jobs. reconnected: Redis is reached again, after either (C-29)."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"
    RECONNECTED = "reconnected"


StateListener = Callable[[ConnectionState], object]


class ConnectionStates:
    """The state and its listeners. lease_s: how long what is held is sure to be held without a word
    from Redis; None: nothing is held here."""

    def __init__(self, lease_s: float | None = None) -> None:
        self.state: ConnectionState | None = None
        """None: nothing was asked of Redis yet."""
        self.reached = False
        """Whether what was asked last was answered."""
        self._lease_s = lease_s
        self._heard_at = monotonic()
        self._listeners: list[StateListener] = []
        self._lock = new_lock()

    def add_listener(self, listener: StateListener) -> None:
        """`listener(state)` is called at each change, in order, by the thread or task that met it:
        it should be quick. What it raises is logged."""
        with self._lock:
            self._listeners.append(listener)

    def remove_listener(self, listener: StateListener) -> None:
        """It is called no more."""
        with self._lock:
            self._listeners.remove(listener)

    def forget(self) -> None:
        """Nothing was asked of Redis yet, as in a process that was just forked."""
        self.state, self.reached = None, False
        self._heard_at = monotonic()

    def works(self) -> None:
        """Redis answered."""
        self._heard_at = monotonic()
        if self.reached:
            return
        self._become(ConnectionState.RECONNECTED if self.state else ConnectionState.CONNECTED)

    def fails(self, error: BaseException) -> None:
        """A call failed: Redis could not be reached, or does not serve now; or it refused this one
        call, which is no change."""
        refused = isinstance(error, RedisOutOfMemory) or not isinstance(error, RedisUnavailable)
        if refused or self.state is ConnectionState.LOST:
            return
        self._become(ConnectionState.SUSPENDED)
        if self._lease_s is not None and monotonic() - self._heard_at > self._lease_s:
            self._become(ConnectionState.LOST)

    def breaks(self) -> None:
        """A connection was lost, and there is another one."""
        self._become(ConnectionState.SUSPENDED)
        self.works()

    def loses(self) -> None:
        """The lease ended."""
        self._become(ConnectionState.LOST)

    def _become(self, state: ConnectionState) -> None:
        with self._lock:
            if self.state is state:
                return
            self.state = state
            self.reached = state in (ConnectionState.CONNECTED, ConnectionState.RECONNECTED)
            for listener in list(self._listeners):
                try:
                    listener(state)
                except Exception:
                    log.exception("a listener of the connection's state failed")
