"""The socket of a connection to Redis: opened, logged in, and closed."""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Callable
from typing import Any

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.errors import ConfigError
from rqueue.protocol.error_mapping import translate
from rqueue.transport import stand_in
from rqueue.transport.redis_client import is_cluster, url_of
from rqueue.transport.resp import ClientFraming, Framing, RespSocket
from rqueue.transport.server_check import check_greeting, check_refusal

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
        if self._timeout is None:  # what waits for ever waits for its replies, not for a login
            inner.socket_timeout = LOGIN_S
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
            raise self._broken(error, sent=False) from error
        except BaseException:
            self.close()
            raise
        self.socket = sock = inner._sock
        self.unread = getattr(sock, "pending", None)
        if self._timeout is None:
            inner.socket_timeout = None
            if isinstance(sock, socket.socket):
                sock.settimeout(None)
        self._framing = self._framed(sock)

    def _framed(self, sock: Any) -> Framing:
        """What carries commands over a socket that is connected."""
        if type(sock) is socket.socket:
            return RespSocket(sock, self._timeout, self._inner._parser.parse_error)
        return ClientFraming(self._inner)

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
