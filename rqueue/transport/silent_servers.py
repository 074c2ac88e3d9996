"""Servers that gave no answer while one command ran: each is waited for once, and with a word.

The clients that are watched note a server that let a time limit pass, and fail at once where it is
to be asked again. One that takes long is named while it is waited for. Both are for a command that
looks and ends: a program that goes on for days asks again, and one that waits by its nature has
nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import redis
from redis import exceptions as rx
from redis.connection import AbstractConnection

from rqueue.transport.cluster_client import LateCluster

__all__ = ["SAY_AFTER_S", "SilentServers"]

SAY_AFTER_S = 3.0
"""Seconds of waiting after which the server that is waited for is named."""


class SilentServers:
    """Those that gave no answer so far. say: is called with the address of one that has been waited
    for so long, once for each."""

    def __init__(self, say: Callable[[str], None] = lambda _address: None) -> None:
        self._say = say
        self._said: set[str] = set()
        self._silent: set[str] = set()
        self._over = False

    def watch(self, client: redis.Redis) -> redis.Redis:
        """Note what the connections of a client meet that has not opened any; the client."""
        either: Any = client
        if isinstance(either, LateCluster):
            either.remake(self._kind)
            return client
        pool = either.connection_pool
        pool.connection_class = self._kind(pool.connection_class)
        manager = getattr(pool, "sentinel_manager", None)
        for sentinel in manager.sentinels if manager is not None else ():
            asked = sentinel.connection_pool
            asked.connection_class = self._kind(asked.connection_class)
        return client

    def forget(self) -> None:
        """From now on the command waits by its nature: nothing is noted, and nothing said."""
        self._over = True
        self._silent.clear()

    def _kind(self, kind: type[Any]) -> type[Any]:
        """A class of connections as this one, which note what they meet."""
        if not issubclass(kind, AbstractConnection):
            return kind  # in memory
        servers = self

        class Watched(kind):  # type: ignore[misc]
            def connect_check_health(self, *args: Any, **kwargs: Any) -> None:
                if self._sock:
                    super().connect_check_health(*args, **kwargs)
                    return
                with servers._opening(_address(self)):
                    super().connect_check_health(*args, **kwargs)

            def read_response(self, *args: Any, **kwargs: Any) -> Any:
                with servers._reading(self, _address(self)):
                    return super().read_response(*args, **kwargs)

        return Watched

    @contextmanager
    def _opening(self, address: str) -> Iterator[None]:
        if address in self._silent:
            raise _silent(address, f"Timeout connecting to {address}: it gave no answer before")
        slow = Timer(SAY_AFTER_S, self._name, (address,))
        slow.daemon = True
        slow.start()
        try:
            yield
        except rx.TimeoutError as error:
            raise self._noted(address, error, "connecting to") from error
        finally:
            slow.cancel()

    @contextmanager
    def _reading(self, connection: Any, address: str) -> Iterator[None]:
        limit = connection.socket_timeout
        long = limit is None or limit > SAY_AFTER_S
        asked = long and not self._over and address not in self._said and connection._sock
        left = asked and not connection.can_read(timeout=SAY_AFTER_S)
        if left:
            self._name(address)
            connection._sock.settimeout(limit and limit - SAY_AFTER_S)
        try:
            yield
        except rx.TimeoutError as error:
            raise self._noted(address, error, "reading from") from error
        finally:
            if left and connection._sock:
                connection._sock.settimeout(limit)

    def _name(self, address: str) -> None:
        if address not in self._said and not self._over:
            self._said.add(address)
            self._say(address)

    def _noted(self, address: str, error: rx.TimeoutError, doing: str) -> rx.TimeoutError:
        """The server let a limit pass; the error that names it."""
        if not self._over:
            self._silent.add(address)
        if getattr(error, "silent", ""):
            return error
        return _silent(address, f"Timeout {doing} {address}")


def _silent(address: str, said: str) -> rx.TimeoutError:
    error = rx.TimeoutError(said)
    error.silent = address  # type: ignore[attr-defined]  # `translate` says it
    return error


def _address(connection: Any) -> str:
    path = getattr(connection, "path", None)
    return str(path) if path else f"{connection.host}:{connection.port}"
