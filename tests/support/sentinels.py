"""A primary, replicas, and three real Sentinels that watch them, on the loopback interface."""

import signal
import subprocess
import time
from pathlib import Path

import redis

from rqueue.embedded.server import EmbeddedRedis
from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.redis_cluster import port_of
from tests.support.redis_server import Servers

NAME = "main"
PASSWORD = "server-secret"
SENTINEL_PASSWORD = "sentinel-secret"
DOWN_MS = 1500
"""How long a primary is silent before it counts as dead: half a second is too short when busy."""


class BehindSentinels:
    """`url` is a Sentinel URL with all that it takes. The first of `servers` is the primary, the
    last the one that was killed."""

    def __init__(
        self, servers: Servers, directory: Path, replicas: int = 1, **config: object
    ) -> None:
        self.servers: list[EmbeddedRedis] = []
        self._sentinels: list[subprocess.Popen[bytes]] = []
        self.sentinel_ports: list[int] = []
        both = {"requirepass": PASSWORD, "masterauth": PASSWORD, **config}
        try:
            for _ in range(1 + replicas):
                self.servers.append(servers.make("newest", port=0, config=both).start())
            for replica in self.servers[1:]:
                self.follow(replica, self.servers[0])
            binary = servers.binary("newest").path
            for number in range(3):
                self._watch(binary, directory / f"sentinel{number}")
            self.agreed(self.servers[0])
        except BaseException:
            self.stop()
            raise

    def _watch(self, binary: Path, directory: Path) -> None:
        directory.mkdir()
        port = free_port()
        primary = f"sentinel monitor {NAME} 127.0.0.1 {port_of(self.servers[0])} 2"
        (directory / "sentinel.conf").write_text(
            f"port {port}\nbind 127.0.0.1\ndir {directory}\n"
            f"requirepass {SENTINEL_PASSWORD}\nsentinel sentinel-pass {SENTINEL_PASSWORD}\n"
            f"{primary}\nsentinel auth-pass {NAME} {PASSWORD}\n"
            f"sentinel down-after-milliseconds {NAME} {DOWN_MS}\n"
            f"sentinel failover-timeout {NAME} 3000\n"
        )
        command = [str(binary), str(directory / "sentinel.conf"), "--sentinel"]
        with (directory / "log").open("wb") as log:
            self._sentinels.append(subprocess.Popen(command, stdout=log, stderr=log))
        self.sentinel_ports.append(port)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinel_ports)
        return (
            f"redis+sentinel://:{PASSWORD}@{hosts}/{NAME}/0?sentinel_password={SENTINEL_PASSWORD}"
        )

    @property
    def shown(self) -> str:
        """The URL as messages show it."""
        hosts = ",".join(sorted(f"127.0.0.1:{port}" for port in self.sentinel_ports))
        return f"redis+sentinel://{hosts}/{NAME}/0"

    def client(self, server: EmbeddedRedis) -> redis.Redis:
        return redis.Redis.from_url(server.url, password=PASSWORD)

    def follow(self, replica: EmbeddedRedis, primary: EmbeddedRedis) -> None:
        """Make one server a replica of the other, and wait until it is up to date."""
        with self.client(replica) as client:

            def accepted() -> bool:
                try:
                    client.execute_command("REPLICAOF", "127.0.0.1", port_of(primary))
                except redis.BusyLoadingError:
                    return False  # the Sentinels were faster: it loads what the primary sent
                return True

            until(accepted, "a replica")
            until(lambda: client.info("replication")["master_link_status"] == "up", "a replica")

    def named(self) -> int | None:
        """The primary's port, as the Sentinels say that are alive; None where they do not agree."""
        ports = set()
        for port in self.sentinel_ports:
            with redis.Redis(port=port, password=SENTINEL_PASSWORD) as sentinel:
                ports.add(sentinel.sentinel_get_master_addr_by_name(NAME))
        return ports.pop()[1] if len(ports) == 1 else None

    def agreed(self, primary: EmbeddedRedis) -> None:
        """Wait until all Sentinels know each other, the primary and its replica."""

        def all_know() -> bool:
            for port in self.sentinel_ports:
                try:
                    with redis.Redis(port=port, password=SENTINEL_PASSWORD) as sentinel:
                        state = sentinel.sentinel_masters()[NAME]
                        replicas = sentinel.sentinel_slaves(NAME)
                except redis.ConnectionError:
                    return False
                if state["port"] != port_of(primary) or state["num-other-sentinels"] != 2:
                    return False
                if not any(not one["is_sdown"] and one["master-link-status"] == "ok"
                           for one in replicas):  # fmt: skip
                    return False
            return True

        until(all_know, "that the Sentinels agree", 40)

    def kill_primary(self) -> tuple[EmbeddedRedis, float]:
        """Kill it as a power cut would; the new primary, and when (monotonic time) the Sentinels
        named it."""
        old, *others = self.servers
        old.kill()
        until(lambda: self.named() in map(port_of, others), "a failover", 30)
        named_at = time.monotonic()
        port = self.named()
        others.sort(key=lambda server: port_of(server) != port)
        self.servers = [*others, old]
        return others[0], named_at

    def bring_back(self) -> None:
        """Start the one that was killed, as a replica of the other."""
        primary, dead = self.servers[0], self.servers[-1]
        dead.start()
        self.follow(dead, primary)
        self.agreed(primary)

    def stop(self) -> None:
        for process in self._sentinels:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for server in self.servers:
            server.stop()
