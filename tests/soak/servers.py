"""The soak's Redis: which one, its replica for a failover, and the proxies in front of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.embedded.binaries import ServerBinary, inspect
from rqueue.embedded.server import EmbeddedRedis
from tests.support.proxy import Proxy
from tests.support.redis_server import MissingServer, binaries

SCOPES = ("pools", "producers", "consumers")
"""Who has a proxy of their own."""

CONFIG: dict[str, str | int] = {"appendfsync": "always", "lua-time-limit": 200}
"""What was confirmed is on the disk; a script is too slow after 0.2 s."""


def choose(name: str) -> ServerBinary:
    """The server of this name (`redis62`, `redis70`, `valkey91`, `newest`), or at this path.

    Raises MissingServer.
    """
    if "/" in name:
        binary = inspect(Path(name), "--server")
        if binary is None:
            raise MissingServer(f"{name} is no server that runs here")
        return binary
    known = binaries()
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise MissingServer(f"there is no server {name!r} on this machine, only: {there}")
    return known[name]


class Server:
    """A master with its append-only file, behind one proxy for each kind of clients.

    `admin` goes past the proxies: with it the soak looks, and does harm.
    """

    def __init__(self, binary: ServerBinary, folder: Path) -> None:
        self.binary = binary
        self._folder = folder
        self._config = dict(CONFIG)
        if binary.version >= (7, 0, 0):
            self._config["enable-debug-command"] = "local"
        self._made = 0
        self.master = self._make()
        self.proxies: dict[str, Proxy] = {}

    def _make(self) -> EmbeddedRedis:
        self._made += 1
        folder = self._folder / f"redis{self._made}"
        return EmbeddedRedis(folder, binary=self.binary, config=self._config, port=0)

    def start(self) -> None:
        """Start it, and the proxies."""
        self.master.start()
        for scope in SCOPES:
            self.proxies[scope] = Proxy(self._target(self.master))

    @property
    def admin(self) -> redis.Redis:
        """A client of its own on the unix socket, which does not repeat what failed."""
        return open_admin(self.master)

    def url(self, scope: str) -> str:
        """Where clients of a kind find the server."""
        return self.proxies[scope].url

    @contextmanager
    def replica(self) -> Iterator[EmbeddedRedis]:
        """A real replica that has all that the master has."""
        server = self._make().start()
        try:
            with open_admin(server) as there:
                host, port = self._address(self.master)
                there.replicaof(host, port)
                wait_for(lambda: there.info("replication").get("master_link_status") == "up")
            yield server
        finally:
            if server is not self.master:
                server.stop()

    def fail_over(self, to: EmbeddedRedis) -> None:
        """Make another server the master, with all that this one has confirmed, as an operator
        does; clients that are connected stay with the old one, which takes no writes any more."""
        with open_admin(self.master) as here, open_admin(to) as there:
            host, port = self._address(to)
            here.execute_command("FAILOVER", "TO", host, port, "TIMEOUT", 5000)
            try:
                wait_for(lambda: there.info("replication")["role"] == "master", 8)
                wait_for(lambda: here.info("replication").get("master_link_status") == "up", 8)
            except TimeoutError:
                with suppress(redis.RedisError):
                    here.execute_command("FAILOVER", "ABORT")
                if there.info("replication")["role"] != "master":
                    raise
        self.master = to
        for proxy in self.proxies.values():
            proxy.lead_to(self._target(to))

    def stop(self) -> None:
        """End everything."""
        for proxy in self.proxies.values():
            proxy.close()
        self.master.stop()

    @staticmethod
    def _target(server: EmbeddedRedis) -> str:
        return server.url.removeprefix("unix://")

    @staticmethod
    def _address(server: EmbeddedRedis) -> tuple[str, int]:
        return "127.0.0.1", int(server.tcp_url.rsplit(":", 1)[1].partition("/")[0])


def open_admin(server: EmbeddedRedis) -> redis.Redis:
    """A client on a server's own socket, which does not repeat what failed."""
    return redis.Redis.from_url(server.url, retry=Retry(NoBackoff(), 0), socket_timeout=20)


def wait_for(condition: Any, seconds: float = 60) -> None:
    """Look again and again. Raises TimeoutError."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("it did not happen")
        time.sleep(0.01)
