"""Connections over TLS whose handshake has the time of connecting, not that of a command: a server
that does not speak TLS lets it wait."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import parse_qs, urlsplit

from redis.connection import SSLConnection
from redis.sentinel import SentinelManagedConnection

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.server_url import spoken

__all__ = ["SentinelTlsConnection", "TlsConnection", "check_tls", "tls_options"]

_OPTIONS = (
    "ssl_ca_certs",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
)
"""What a URL may say of TLS; see docs/servers.md."""

_REQUIRED = ("required", "optional", "none")


def check_tls(url: str) -> None:
    """Raise ConfigError where options of TLS in a URL cannot be used: else each try to connect
    would say so, as if the server were away."""
    said = {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
    required = said.get("ssl_cert_reqs", "required")
    if required not in _REQUIRED:
        raise ConfigError(
            "url", f"ssl_cert_reqs={shown(required)}: it is one of {', '.join(_REQUIRED)}"
        )
    if (authorities := said.get("ssl_ca_certs")) is not None:
        _check_file("ssl_ca_certs", authorities)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(authorities)
        except ssl.SSLError as error:
            raise ConfigError("url", f"ssl_ca_certs: no certificate in {authorities!r}") from error
    if (own := said.get("ssl_certfile")) is not None:
        key, password = said.get("ssl_keyfile"), said.get("ssl_password", "")
        for name, file in (("ssl_certfile", own), ("ssl_keyfile", key)):
            if file is not None:
                _check_file(name, file)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(own, key, password)
        except ssl.SSLError as error:
            why = "not a certificate with its key, or ssl_password is not the key's"
            raise ConfigError("url", f"ssl_certfile, ssl_keyfile: {why}") from error


def tls_options(unknown: str, url: str) -> str:
    """What to add where an option of a URL is not known: which there are, if it is about TLS."""
    if "ssl_" not in unknown:
        return ""
    if not spoken(url).startswith("rediss"):
        return "; TLS is rediss://"
    return f"; those of TLS are {', '.join(_OPTIONS)}"


def _check_file(name: str, file: str) -> None:
    try:
        with open(file, "rb"):
            pass
    except OSError as error:
        raise ConfigError("url", f"{name}: {file!r} cannot be read: {error.strerror}") from error


class TlsConnection(SSLConnection):
    """redis-py's."""

    def _wrap_socket_with_ssl(self, sock: Any) -> Any:
        sock.settimeout(self.socket_connect_timeout)
        wrapped = super()._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call]
        wrapped.settimeout(self.socket_timeout)
        return wrapped


class SentinelTlsConnection(SentinelManagedConnection, TlsConnection):
    """The same, to the primary that Sentinels name."""
