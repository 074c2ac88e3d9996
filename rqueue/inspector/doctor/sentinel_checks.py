"""The Sentinels of a primary: which one they name, which replicas may take its place, and whether a
failover is under way."""

from __future__ import annotations

from typing import Any

import redis

from rqueue.errors import ServerError
from rqueue.inspector.doctor.findings import Finding, Severity
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue.transport.sentinel import ASK_S, View, views_of

__all__ = ["check_primary"]


def check_primary(client: redis.Redis) -> tuple[list[Finding], bool]:
    """Findings about the Sentinels and the primary that they name, and whether that one answers. No
    server is waited for longer than some seconds."""
    pool: Any = client.connection_pool
    views, silent = views_of(pool)
    found = [
        _finding("sentinel-away", f"Sentinel {address} cannot be asked: {error}")
        for address, error in silent.items()
    ]
    found += _compared(views)
    asking = Connection(client, ASK_S)
    try:
        asking.command("PING")
    except ServerError as error:
        found.append(_finding("primary-away", f"{_named(views)} ({error})"))
        return found, False
    finally:
        asking.close()
    return found, True


def _named(views: dict[str, View]) -> str:
    """The primary as most of the Sentinels see it, with what may become of it."""
    if not views:
        return "no Sentinel answers, so that nobody says which server is the primary"
    view = max(views.values(), key=lambda one: list(views.values()).count(one))
    up, away = view.replicas
    said = f"no answer from {view.primary}, the primary that the Sentinels name"
    heirs = f"{many(up, 'replica')} of it can take over" if up else "no replica can take over"
    gone = f" ({away} more cannot be reached)" if away else ""
    if any(one.promotes for one in views.values()):
        course = "a failover is under way, and jobs wait for it"
    elif any(one.down for one in views.values()):
        course = "they count it as down, and no failover has begun: jobs wait"
    else:
        course = "they do not count it as down yet"
    return f"{said}; {heirs}{gone}; {course}"


def _compared(views: dict[str, View]) -> list[Finding]:
    named: dict[str, list[str]] = {}
    for address, view in views.items():
        named.setdefault(view.primary, []).append(address)
    if len(named) > 1:
        said = ", ".join(f"{primary} ({', '.join(who)})" for primary, who in named.items())
        return [
            _finding(
                "sentinels-differ",
                f"the Sentinels name different primaries: {said}; a failover has just been, or one"
                " of them is cut off",
            )
        ]
    if views and not any(view.replicas[0] for view in views.values()):
        (primary,) = named
        return [
            _finding(
                "no-replica",
                f"primary {primary} has no replica that the Sentinels reach: when it is gone,"
                " nobody takes its place",
                "note",
            )
        ]
    return []


def _finding(kind: str, says: str, severity: Severity = "problem") -> Finding:
    return Finding("server", kind, "", "", says, severity=severity)
