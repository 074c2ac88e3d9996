"""Connections over TLS whose handshake has the time of connecting, not that of a command: a server
that does not speak TLS lets it wait."""

from __future__ import annotations

from typing import Any

from redis.connection import SSLConnection
from redis.sentinel import SentinelManagedConnection

__all__ = ["SentinelTlsConnection", "TlsConnection"]


class TlsConnection(SSLConnection):
    """redis-py's."""

    def _wrap_socket_with_ssl(self, sock: Any) -> Any:
        sock.settimeout(self.socket_connect_timeout)
        wrapped = super()._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call]
        wrapped.settimeout(self.socket_timeout)
        return wrapped


class SentinelTlsConnection(SentinelManagedConnection, TlsConnection):
    """The same, to the primary that Sentinels name."""
