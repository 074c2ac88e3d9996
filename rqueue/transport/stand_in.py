"""A server in memory that stands for all others while a test runs (`rqueue.testing`).

Script calls go over `connection` and `async_connection`, Redis's own commands over `redis_client`;
there, and where a client is opened, it is asked for. Nothing else sends anything. In a process that
runs no tests it is never set.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["begin", "end", "memory_url", "name_of"]


class Redirected(Protocol):
    """A connection."""

    def redirect(self) -> None:
        """Drop what is open; what is opened next leads where this module says."""
        ...


_name = ""
_client: Any = None
behind_call: Callable[[], object] | None = None
"""Called after each script call of a client; what it raises is raised to its caller."""
_connections: weakref.WeakSet[Redirected] = weakref.WeakSet()
"""All that there are: what is open when a test begins leads elsewhere."""


def note(connection: Redirected) -> None:
    """A connection was made."""
    _connections.add(connection)


def name_of() -> str:
    """The name of the server in memory that stands for others; "" for none."""
    return _name


def memory_url() -> str:
    """Its URL; "" for none."""
    return f"memory://{_name}" if _name else ""


def begin(name: str) -> None:
    """From now on, all that is sent goes to this server in memory."""
    global _name, _client
    from rqueue.transport.memory.clients import open_memory_client

    _client = open_memory_client(name)
    _name = name
    _close_all()


def end() -> None:
    """Send again where it was meant to go."""
    global _name, _client, behind_call
    _name, _client, behind_call = "", None, None
    _close_all()


def client_for(client: Any) -> Any:
    """The client that a command of Redis's own goes over."""
    return client if _client is None else _client


def _close_all() -> None:
    for connection in list(_connections):
        connection.redirect()
