"""Waits for a server that gives no answer: meanwhile it is asked who is in charge by now.

A host that vanishes resets no connection, and a process that hangs keeps its connections open. Who
waits for such a server asks others once a second: the Sentinels, another node of the cluster, the
resolver of the server's name. When another server has its place, the wait ends with `Replaced`,
and the call goes there. An answer that comes late is believed only if the server still has its
place. `rqueue.transport.async_vigil` is the same for asyncio.
"""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any

from redis import exceptions as rx

from rqueue.errors import RQueueError
from rqueue.model.locks import new_lock
from rqueue.protocol.slots import Address
from rqueue.transport.cluster_client import LateCluster
from rqueue.transport.resp import QUIET_S, happens
from rqueue.transport.sentinel import primary_named

__all__ = [
    "AGAIN_S",
    "InCharge",
    "Replaced",
    "Vigil",
    "Wait",
    "hang_up",
    "is_replaceable",
    "moving_name",
    "vigil_of",
    "watch_client",
    "watched",
]

AGAIN_S = 1.0
"""Seconds from one such question to the next."""

HURRIED_S = 0.25
"""The same, if an answer is there and it is not known whether to believe it."""

InCharge = Callable[[Collection[Address]], Collection[Address] | None]
"""Says which servers are in charge now, given those that are silent. None: a failover is under way.
Raises errors of redis-py, `rqueue.errors` or OSError if nobody can be asked."""

UNKNOWN = (rx.RedisError, rx.RedisClusterException, RQueueError, OSError)


class Replaced(rx.TimeoutError):
    """Another server has taken the place of the one that was asked. Its answer, if there is one
    later, counts for nothing."""

    def __init__(self, address: Address, waited: float) -> None:
        super().__init__(f"{address} has been replaced")
        self.elsewhere = True
        self.waited = waited


class Wait:
    """For one answer. over: the server has been replaced."""

    __slots__ = ("address", "end", "over", "since")

    def __init__(self, address: Address, end: Callable[[], object]) -> None:
        self.address = address
        self.end = end
        """Called when the server has been replaced: what waits wakes up."""
        self.over = False
        self.since = monotonic() - QUIET_S

    @property
    def waited(self) -> float:
        """Seconds."""
        return monotonic() - self.since


class Vigil:
    """Of one client, for its threads. One of its own asks while others wait, and ends with the last
    wait. Safe after a fork."""

    def __init__(self, in_charge: InCharge, *, of_name: bool = False) -> None:
        """of_name: servers are named apart by where a name leads."""
        self._in_charge = in_charge
        self._of_name = of_name
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Condition(new_lock())
        self._waits: list[Wait] = []
        self._thread: threading.Thread | None = None
        self._asked = 0
        """How many questions have begun."""
        self._named: Collection[Address] | None = ()
        """The last answer; () = nobody could be asked."""
        self._known = 0
        """To which question that is the answer."""
        self._hurry = False
        self._begun = 0.0
        """When the last question began, by monotonic time."""

    def waits(self, connection: Any, event: int, seconds: float, due: bool) -> bool:
        """Wait for what was late already; False if it is not there after so many seconds.

        - connection: of redis-py.
        - event: POLLIN, an answer; POLLOUT, room for a command.
        - due: the server owed it at once, so the answer of one that was replaced counts for
          nothing.

        Raises Replaced."""
        sock, until = connection._sock, monotonic() + seconds
        if self._of_name and not due:  # a resolver is not asked again and again for nothing
            return happens(sock, event, seconds)
        address = place_of(connection, of_name=self._of_name)
        wait = Wait(address, lambda: hang_up(sock))
        with self._entered(wait):
            found = happens(sock, event, seconds)
            if found and due and event == select.POLLIN and not wait.over:
                self._doubt(wait, until)
        if wait.over:
            raise Replaced(address, wait.waited)
        return found

    @contextmanager
    def _entered(self, wait: Wait) -> Iterator[None]:
        if self._pid != os.getpid():  # the thread is the parent's
            self._begin()
        with self._lock:
            self._waits.append(wait)
            if self._thread is None:
                thread = threading.Thread(target=self._ask, name="rqueue-vigil", daemon=True)
                with suppress(RuntimeError):  # the interpreter is ending
                    thread.start()
                    self._thread = thread
        try:
            yield
        finally:
            with self._lock:  # the socket is hung up before, or never
                self._waits.remove(wait)

    def _doubt(self, wait: Wait, until: float) -> None:
        """An answer is there: wait until it is known whether its server is still in charge, as far
        as others can be asked. Raises TimeoutError if that is not known in time."""
        with self._lock:
            after = self._asked
            while not wait.over and self._thread is not None:
                if self._known > after:
                    if self._named is not None:
                        return
                    after = self._known
                if (left := until - monotonic()) <= 0:
                    raise rx.TimeoutError("Timeout reading from socket: a failover is under way")
                self._hurry = True
                self._lock.notify_all()
                self._lock.wait(left)

    def _ask(self) -> None:
        """The thread."""
        try:
            while self._pause():
                with self._lock:
                    self._begun = monotonic()
                    self._asked += 1
                    silent = {wait.address for wait in self._waits}
                try:
                    named = self._in_charge(silent)
                except UNKNOWN:
                    named = ()
                with self._lock:
                    self._named, self._known = named, self._asked
                    for wait in self._waits:
                        if named and wait.address in silent and wait.address not in named:
                            wait.over = True
                            wait.end()
                    self._lock.notify_all()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None
                self._lock.notify_all()

    def _pause(self) -> bool:
        """Wait until the next question is due; False if nobody waits any more."""
        with self._lock:
            while self._waits:
                left = self._begun + (HURRIED_S if self._hurry else AGAIN_S) - monotonic()
                if left <= 0:
                    self._hurry = False
                    return True
                self._lock.wait(left)
            self._thread = None
            return False


def hang_up(sock: socket.socket) -> None:
    """Have whatever waits for this socket wake up, in any thread."""
    with suppress(OSError):  # it has ended by itself
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the socket below, if it is one of TLS


def is_replaceable(client: Any) -> bool:
    """Whether another server may take the place of the one that a client leads to."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or hasattr(pool, "sentinel_manager"):
        return True
    return moving_name(pool) is not None


def moving_name(pool: Any) -> tuple[str, int] | None:
    """Name and port of a pool's server, if that is a name, which may lead elsewhere one day."""
    kwargs = pool.connection_kwargs
    host = kwargs.get("host", "localhost")
    if kwargs.get("path") or kwargs.get("memory") or host == "localhost":
        return None
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host, int(kwargs.get("port", 6379))
    return None


_watched: dict[type[Any], type[Any]] = {}


def watched(kind: type[Any]) -> type[Any]:
    """A class of redis-py's connections as this one, whose waits for an answer are watched from
    `QUIET_S` on: by its `vigil`, which is to be set."""
    if kind in _watched:
        return _watched[kind]

    class Watched(kind):  # type: ignore[misc]
        vigil: Callable[[], Vigil]
        blocked = False
        """Whether the command whose answer is read next blocks by its nature."""
        _late = False
        """Whether `QUIET_S` have passed since the answer was first looked for."""

        def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
            if not self._sock:  # redis-py would go where it was before, and ask no Sentinel
                self.connect()
            super().send_packed_command(*args, **kwargs)

        def can_read(self, timeout: float = 0) -> bool:
            if not self._late:
                quiet = min(timeout, QUIET_S)
                if super().can_read(timeout=quiet):
                    return True
                self._late = quiet == QUIET_S
                timeout -= quiet
            return timeout > 0 and self.vigil().waits(
                self, select.POLLIN, timeout, not self.blocked
            )

        def read_response(self, *args: Any, **kwargs: Any) -> Any:
            limit = self._sock and self._sock.gettimeout()
            try:
                if limit and not self.can_read(limit):
                    raise rx.TimeoutError("Timeout reading from socket")
            except rx.TimeoutError:
                self.disconnect()
                raise
            finally:
                self._late = False
            return super().read_response(*args, **kwargs)

    _watched[kind] = Watched
    return Watched


def watch_client(client: Any) -> None:
    """Have the waits of a client of redis-py watched that has opened no connection."""
    vigil = partial(vigil_of, client)

    def watching(kind: type[Any]) -> type[Any]:
        return type(kind.__name__, (watched(kind),), {"vigil": staticmethod(vigil)})

    if isinstance(client, LateCluster):
        client.remake(watching)
    else:
        pool = client.connection_pool
        pool.connection_class = watching(pool.connection_class)


of_cluster: Callable[[Any], InCharge] | None = None
"""How the nodes of a client's cluster are asked: set by `rqueue.transport.cluster`, which makes
connections that are watched."""


def vigil_of(client: Any) -> Vigil:
    """Of a client for which `is_replaceable`: one object for all who use it."""
    kept: Vigil | None = vars(client).get(_KEPT)
    if kept is None:
        with _making:
            kept = vars(client).setdefault(_KEPT, _made_for(client))
    return kept


_KEPT = "_rqueue_vigil"
_making = new_lock()


def _made_for(client: Any) -> Vigil:
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        assert of_cluster is not None
        return Vigil(of_cluster(client))
    if hasattr(pool, "sentinel_manager"):
        return Vigil(partial(primary_named, pool))
    name = moving_name(pool)
    assert name is not None
    return Vigil(partial(resolved, *name), of_name=True)


def resolved(host: str, port: int, _silent: Collection[Address]) -> Collection[Address]:
    """Where a name leads now."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {Address(str(at[0]), int(at[1])) for *_, at in found}


def place_of(connection: Any, *, of_name: bool) -> Address:
    """The server that a connection of redis-py leads to: as Sentinels and nodes name it, or, of a
    name that may lead elsewhere, where it led."""
    if of_name:
        return Address(*connection._sock.getpeername()[:2])
    return Address(connection.host, int(connection.port))
