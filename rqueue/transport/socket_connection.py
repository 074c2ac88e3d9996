"""The socket of a connection to Redis: opened, logged in, and closed."""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.errors import ConfigError, RedisTimeout
from rqueue.protocol.error_mapping import translate
from rqueue.transport import stand_in
from rqueue.transport.redis_client import is_cluster, url_of
from rqueue.transport.resp import QUIET_S, ClientFraming, Framing, RespSocket, happens
from rqueue.transport.server_check import check_greeting, check_refusal
from rqueue.transport.vigil import Vigil, is_replaceable, vigil_of, watched

LOGIN_S = 5.0
"""Seconds that a login may take where replies may take for ever."""


class SocketConnection:
    """A socket that is opened like those of `client` (same address, login, TLS), by one thread.

    A forked child begins with all of them closed, also in the middle of a call: two processes would
    read each other's replies. `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.Redis, timeout: float | None = 15.0) -> None:
        self._client = client
        self._timeout = timeout
        self.until: float | None = None
        """Monotonic time beyond which nothing is waited for, for now."""
        self._inner: Any = self._made()
        self._elsewhere = False
        self._framing: Framing | None = None  # while it is connected
        self.socket: Any = None
        """The connected socket, for select; None when not connected."""
        self.unread: Callable[[], int] | None = None
        """How much TLS has read already and not returned yet, of which select says nothing; None
        where nothing does so."""
        stand_in.note(self)
        _living.add(self)

    def _vigil(self) -> Callable[[], Vigil] | None:
        """Who is asked whether another server is in charge by now; None: there never is one."""
        client = stand_in.client_for(self._client)
        return partial(vigil_of, client) if is_replaceable(client) else None

    def _origin(self) -> tuple[type[Any], dict[str, Any]]:
        """The class and the arguments of redis-py's connection."""
        if is_cluster(client := stand_in.client_for(self._client)):
            raise ConfigError(
                "url", "is that of a whole Redis Cluster: what is asked for here needs one server"
            )
        pool = client.connection_pool
        return pool.connection_class, pool.connection_kwargs

    def _made(self) -> Any:
        kind, origin = self._origin()
        kwargs = dict(origin)
        kwargs.update(
            socket_timeout=self._timeout,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            decode_responses=False,
            protocol=2,
        )
        kwargs.pop("retry_on_error", None)
        kwargs.pop("retry_on_timeout", None)
        self._ask = self._vigil()
        if self._ask is not None:
            most = kwargs.get("socket_connect_timeout") or QUIET_S
            kwargs["socket_connect_timeout"] = min(most, QUIET_S)
            if not hasattr(kind, "vigil"):
                made = watched(kind)(**kwargs)
                made.vigil = self._ask
                return made
        return kind(**kwargs)

    def redirect(self) -> None:
        """Drop the connection; the next one leads where `stand_in` says now."""
        self.close()
        self._elsewhere = True

    def connect(self) -> None:
        """Connect, log in and check what answers, if not connected. Raises the tree of
        `rqueue.errors`."""
        if self._elsewhere:
            self._inner, self._elsewhere = self._made(), False
        inner = self._inner
        if self.connected:
            return
        # what waits for ever waits for its replies, not for a login
        limit = LOGIN_S if self._timeout is None else self._timeout
        begun = monotonic()
        if self.until is not None:
            limit = max(0.001, min(limit, self.until - begun))
            most = inner.socket_connect_timeout
            inner.socket_connect_timeout = min(limit, most or limit)
        inner.socket_timeout = limit
        try:
            inner.connect()
            inner.send_command("HELLO")
            try:
                greeting = inner.read_response()
            except rx.ResponseError as error:
                check_refusal(error, self.url)
            else:
                self._check_greeting(greeting)
        except (rx.RedisError, OSError) as error:
            failed = self._broken(error, sent=False)
            if isinstance(failed, RedisTimeout):
                failed.elsewhere = self._ask is not None
                failed.waited = monotonic() - begun
            raise failed from error
        except BaseException:
            self.close()
            raise
        self.socket = sock = inner._sock
        self.unread = getattr(sock, "pending", None)
        inner.socket_timeout = self._timeout
        if isinstance(sock, socket.socket):
            sock.settimeout(self._timeout)
        self._framing = self._framed(sock)

    def _framed(self, sock: Any) -> Framing:
        """What carries commands over a socket that is connected."""
        if type(sock) is socket.socket:
            to_error = self._inner._parser.parse_error
            watched = self._ask is not None
            return RespSocket(sock, self._timeout, to_error, self._late, watched=watched)
        return ClientFraming(self._inner, self._left)

    def _left(self) -> float | None:
        """Seconds until `until`, if there is that."""
        if self.until is None or not isinstance(self.socket, socket.socket):
            return None
        return max(0.001, self.until - monotonic())

    def _late(self, event: int, seconds: float, due: bool) -> bool:
        """As `rqueue.transport.resp.Late`."""
        if (left := self._left()) is not None:
            seconds = min(seconds, left)
        if self._ask is None:
            return happens(self.socket, event, seconds)
        return self._ask().waits(self._inner, event, seconds, due)

    def _check_greeting(self, greeting: Any) -> None:
        check_greeting(greeting, self.url)

    @property
    def url(self) -> str:
        """Where it is connected to, for messages."""
        return url_of(self._client)

    @property
    def connected(self) -> bool:
        """Whether there is a socket (it may be dead and not know)."""
        return self._inner._sock is not None

    def close(self) -> None:
        """Drop the connection; the next command opens a new one."""
        self._framing = self.socket = self.unread = None
        self._inner.disconnect()

    def _broken(self, error: Exception, *, sent: bool = True) -> Exception:
        # a reply may still be on its way: this connection must not be used again
        self.close()
        return translate(error, url=self.url, sent=sent)


_living: weakref.WeakSet[SocketConnection] = weakref.WeakSet()


def _forked() -> None:
    for connection in list(_living):
        connection.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
