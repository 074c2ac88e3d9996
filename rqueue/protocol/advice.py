"""What to do about an error, for people: commands and workers end with the same words."""

from __future__ import annotations

import os
import re

from rqueue import errors
from rqueue.protocol.unreachable import hung_up
from rqueue.settings import HOSTED_URL

__all__ = ["advice", "describe"]


def advice(error: BaseException) -> str:
    """The advice for an error, where the message itself gives none."""
    if isinstance(error, errors.AuthenticationFailed) and "refuses the login" in str(error):
        return "put the right user and password into the URL: redis://USER:PASSWORD@host:6379/0"
    if isinstance(error, errors.ConnectionLost) and re.search("TLS|sentinel_password=", str(error)):
        return ""  # it says what to write
    if isinstance(error, errors.ConnectionLost):
        closed = ""
        if hung_up(said := str(error)) and not error.url.startswith("unix:"):
            own = "a certificate of ours (?ssl_certfile=FILE&ssl_keyfile=FILE)"
            closed = f", does it want {own if 'rediss' in said else 'TLS (rediss://)'}"
        return f"is the server running{closed}, and is {_source()} right?"
    if isinstance(error, errors.RedisTimeout) and "TLS" not in str(error):
        return f"is the server overloaded, or the address in {_source()} not a Redis?"
    if isinstance(error, errors.RedisOutOfMemory):
        return "raise maxmemory, or make room: rqueue purge, rqueue dead purge"
    if isinstance(error, errors.RedisReadOnly) and "primary" not in str(error):
        return "point --url at the primary server, or try again after the failover"
    if isinstance(error, errors.SlotBusy):
        return "nothing of it runs meanwhile; 'rqueue doctor' says whether that ends by itself"
    if isinstance(error, errors.RedisLoading | errors.RedisBusy):
        return "try again in a moment"
    if isinstance(error, errors.UnknownQueue) and not error.remedy:
        return "see 'rqueue queues' for those there are"
    return ""


def _source() -> str:
    """Where the address of the server may have come from."""
    hosted = os.environ.get(HOSTED_URL) and not os.environ.get("RQUEUE_URL")
    return f"--url or {HOSTED_URL if hosted else 'RQUEUE_URL'}"


def describe(error: BaseException) -> str:
    """One line for an error: what is wrong, and what to do."""
    said = " ".join(str(error).splitlines()[:1]) or type(error).__name__
    hint = advice(error)
    return f"{said}; {hint}" if hint else said
