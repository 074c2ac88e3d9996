"""The server that another program keeps running in a directory: found, and verified to be alive.

`rqueue dev` keeps one in `.rqueue/` of a project's folder. Programs that are started there and are
given no URL use it, so that development needs no settings.
"""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from rqueue.errors import ConfigError
from rqueue.logs import logger
from rqueue.settings import Settings
from rqueue.transport import stand_in

__all__ = [
    "DEV_DIRECTORY",
    "STATE_FILE",
    "ServerState",
    "ask",
    "port_url",
    "refuse_foreign",
    "running",
    "running_state",
    "socket_url",
    "with_url",
]

DEV_DIRECTORY = ".rqueue"
"""Where `rqueue dev` keeps its server, below the current folder."""

STATE_FILE = "server.json"

_PROCESS_ID = re.compile(rb"^process_id:(\d+)\r?$", re.MULTILINE)

log = logger("rqueue")


def with_url(settings: Settings) -> Settings:
    """The settings with a URL: their own, or that of the development server of this folder.

    Raises ConfigError, which says what to set.
    """
    if settings.url:
        return settings
    if memory := stand_in.memory_url():
        return replace(settings, url=memory)
    url = running(DEV_DIRECTORY)
    if url is None:
        raise ConfigError(
            "url",
            "no server: set RQUEUE_URL=redis://host:6379/0, pass url= or redis=, call "
            "rqueue.configure(url), or start one for development in this folder: rqueue dev",
        )
    log.info("using the development server of this folder: %s", url)
    return replace(settings, url=url)


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a running server's directory says about it, for other processes."""

    pid: int
    socket: str
    port: int | None


def running(directory: str | Path) -> str | None:
    """Return the URL of the server that is kept running in `directory`, or None.

    What the directory says is verified, see `running_state`, which also tells the errors.
    """
    state = running_state(directory)
    return socket_url(state.socket) if state is not None else None


def running_state(directory: str | Path) -> ServerState | None:
    """The server that is kept running in `directory`, or None.

    It has to answer under the process id it was started with, so that the remains of a crash are
    not believed. Raises ConfigError if directory, file or socket belong to another user.
    """
    file = Path(directory, STATE_FILE)
    refuse_foreign(file.parent, file)
    try:
        state = ServerState(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    refuse_foreign(Path(state.socket))
    found = _PROCESS_ID.search(ask(state.socket, b"INFO server\r\n"))
    return state if found and int(found[1]) == state.pid else None


def refuse_foreign(*paths: Path) -> None:
    """Raise ConfigError if one of these belongs to another user, who would get our jobs.

    A path that does not exist belongs to nobody.
    """
    for path in paths:
        try:
            owner = path.lstat().st_uid
        except (OSError, ValueError):
            continue
        if owner != os.geteuid():
            raise ConfigError(
                "url",
                f"{path.absolute()} belongs to another user (uid {owner}), whose server would get"
                " these jobs: nothing was sent. Remove it, or name the server: RQUEUE_URL=...",
            )


def socket_url(path: str) -> str:
    """The URL of a server that listens on this unix socket."""
    return f"unix://{path}"


def ask(path: str, command: bytes) -> bytes:
    """Send one inline command and return the reply as far as it comes at once; empty if none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        try:
            connection.connect(path)
            connection.sendall(command)
            reply = b""
            while b"\n" not in reply or (reply[:1] == b"$" and len(reply) < _bulk_length(reply)):
                more = connection.recv(65536)
                if not more:
                    break
                reply += more
            return reply
        except OSError:
            return b""


def port_url(port: int) -> str:
    """The URL of a server that listens on this port of the loopback interface."""
    return f"redis://127.0.0.1:{port}/0"


def _bulk_length(reply: bytes) -> int:
    head, _, _ = reply.partition(b"\r\n")
    return len(head) + 2 + int(head[1:]) + 2
