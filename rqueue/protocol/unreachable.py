"""What redis-py says where it has reached no server: by its texts, where it has no other sign."""

from __future__ import annotations

import re

from redis import exceptions as rx

__all__ = [
    "advised",
    "hung_up",
    "is_no_cluster",
    "never_connected",
    "no_primary",
    "not_connected",
    "said_of_the_map",
    "silent_server",
]


def never_connected(error: BaseException) -> bool:
    """Whether a time-out is that of making a connection."""
    return isinstance(error, rx.TimeoutError) and "connecting" in str(error)


def not_connected(error: Exception) -> bool:
    """Whether an error of redis-py says that no connection could be made: over this one, nothing
    was sent."""
    return isinstance(error, rx.ConnectionError | rx.TimeoutError) and bool(
        _CONNECTING.match(str(error))
    )


def silent_server(error: BaseException | None) -> str:
    """Host and port of the server that an error says is away, "" where it names none. Our error is
    raised from redis-py's; a time-out has the address where `SilentServers` notes it."""
    while error is not None:
        noted: str = getattr(error, "silent", "")
        found = _REFUSED.match(str(error))
        if noted or found:
            return noted or (found[1] if found else "")
        error = error.__cause__ or error.__context__
    return ""


_REFUSED = re.compile(r"(?:Error (?:-?\d+ )?|Timeout )connecting to (\S+:\d+)")
_CONNECTING = re.compile(r"(Error (-?\d+ )?|Timeout )connecting to |No master found for ")


def is_no_cluster(error: rx.RedisClusterException) -> bool:
    """Whether a client of a cluster has found a server that is in none."""
    return "Cluster mode is not enabled" in str(error)


def said_of_the_map(error: rx.RedisClusterException) -> Exception | None:
    """What the last node said that redis-py has asked for the map of a cluster. To redis-py every
    refusal says that the server is in no cluster, of a login too that may not ask."""
    inner: BaseException | None = error.__cause__
    while isinstance(inner, rx.RedisClusterException):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, rx.NoPermissionError):
        return inner
    return error.__cause__ if isinstance(error.__cause__, Exception) else None


def no_primary(said: str, url: str) -> str | None:
    """In short what redis-py says, with its objects, where no Sentinel named a primary; None for
    other texts. url: as the transport shows it, with a scheme."""
    found = re.match(r"No master found for '(.*?)'", said)
    if found is None:
        return None
    hosts = url.partition("://")[2].partition("/")[0]
    silent = said.count("> - ")  # one for each that gave no answer
    if silent and re.search(r"Authentication|NOAUTH|WRONGPASS", said):
        return (
            f"a Sentinel refuses the login: those at {hosts} want their own, "
            "?sentinel_username=USER&sentinel_password=PASSWORD"
        )
    if silent > hosts.count(","):
        return f"no Sentinel answers at {hosts}"
    return f"no primary '{found[1]}' is known to the Sentinels that answer at {hosts}"


def hung_up(said: str) -> bool:
    """Whether an error's text says that the server ended a connection. One that wants TLS does so:
    what it had not read yet makes that a reset."""
    return "closed by server" in said or "reset by peer" in said


def advised(said: str, error: BaseException, url: str, *, sent: bool) -> str:
    """What is said of an error, with what to do where TLS is why there is no connection."""
    advice = _tls_advice(error, url, sent=sent)
    return f"{said.rstrip('.')}{advice}" if advice else said


def _tls_advice(error: BaseException, url: str, *, sent: bool) -> str:
    """What to do where TLS is why there is no connection, or may be; "" where it is not."""
    error = getattr(error, "of_sentinel", error)  # what it says itself is no more than a class
    said = str(error)
    if url.startswith("unix:"):
        return ""  # nobody speaks TLS there
    if found := _UNTRUSTED.search(said):
        why = found[1].strip(" .")
        if "mismatch" in why:
            return (
                f"; its certificate for TLS has another name ({why}): write that one into the URL,"
                " or ?ssl_check_hostname=false"
            )
        if "expired" in why or "not yet valid" in why:
            return (
                f"; its certificate for TLS is not valid now ({why}): renew it on the server, or "
                "set the clock of this host"
            )
        return (
            f"; its certificate for TLS is not trusted ({why}): write the file of the authority "
            "that signed it into the URL, ?ssl_ca_certs=FILE"
        )
    if "rediss" in url:
        if found := _ALERT.search(said):
            why = found[1].lower().replace("_", " ")
            return f"; what it says of our own certificate for TLS is '{why}': write {_OWN}"
        closed = isinstance(error, rx.ConnectionError | ConnectionError) and hung_up(said)
        if (closed and not sent) or "EOF occurred in violation of protocol" in said:
            return f"; does it want a certificate of ours for TLS? {_OWN} is with it"
        silent = never_connected(error) or "WRONG_VERSION_NUMBER" in said
        return "; does this port speak TLS? redis:// is without" if silent else ""
    closed = isinstance(error, rx.ConnectionError | ConnectionError) and hung_up(said)
    return "; does it want TLS? rediss:// is with it" if closed and not sent else ""


_OWN = "?ssl_certfile=FILE&ssl_keyfile=FILE"

# what OpenSSL makes of the server's alert, where that is about the client's certificate
_ALERT = re.compile(
    r"(?:SSLV3|TLSV1|TLSV13)_ALERT_((?:BAD_|UNSUPPORTED_)?CERTIFICATE(?:_\w+)?|UNKNOWN_CA"
    r"|HANDSHAKE_FAILURE)"
)
_UNTRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED\].*?failed: (.*?)(?:\(_ssl|$)")
