"""A primary on a host of its own, which vanishes from the network: nothing that is sent to it is
answered, and no connection is reset. The host is a network namespace, which takes root."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from tests.support.redis_server import Servers

HERE, THERE = "10.213.77.1", "10.213.77.2"
NAME = "main"

_numbers = itertools.count(1)


class VanishingPrimary:
    """Behind Sentinels; they and its replica are here. As `tests.support.hanging.Replaceable`."""

    queue = "q"

    def __init__(self, servers: Servers, directory: Path) -> None:
        self._space = f"rq{os.getpid()}-{next(_numbers)}"
        self._near = f"v{os.getpid() % 100_000}n{next(_numbers)}"
        self._binary = str(servers.binary("newest").path)
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._lay_cable()
            self._port, self._heir = free_port(), free_port()
            self._start("primary", THERE, self._port, within=True)
            self._start("replica", HERE, self._heir, f"replicaof {THERE} {self._port}")
            with redis.Redis(HERE, self._heir) as heir:
                until(lambda: heir.info("replication")["master_link_status"] == "up", "a replica")
            self._sentinels = [free_port() for _ in range(3)]
            for port in self._sentinels:
                self._start(
                    f"sentinel{port}",
                    HERE,
                    port,
                    f"sentinel monitor {NAME} {THERE} {self._port} 2",
                    f"sentinel down-after-milliseconds {NAME} 1500",
                    f"sentinel failover-timeout {NAME} 3000",
                    sentinel=True,
                )
            until(self._agreed, "that the Sentinels agree", PATIENCE)
        except BaseException:
            self.stop()
            raise
        self.url = "redis+sentinel://" + ",".join(f"{HERE}:{port}" for port in self._sentinels)
        self.url += f"/{NAME}"

    def _lay_cable(self) -> None:
        far, space = f"{self._near}f", self._space
        for line in (
            f"netns add {space}",
            f"link add {self._near} type veth peer name {far} netns {space}",
            f"addr add {HERE}/30 dev {self._near}",
            f"link set {self._near} up",
            f"-n {space} addr add {THERE}/30 dev {far}",
            f"-n {space} link set {far} up",
        ):
            ip(line)

    def _start(
        self,
        name: str,
        host: str,
        port: int,
        *config: str,
        within: bool = False,
        sentinel: bool = False,
    ) -> None:
        place = self._directory / name
        place.mkdir()
        lines = [f"port {port}", f"bind {host}", f"dir {place}", "protected-mode no", *config]
        (place / "conf").write_text("\n".join(lines) + "\n")
        command = ["ip", "netns", "exec", self._space] if within else []
        command += [self._binary, str(place / "conf"), *(["--sentinel"] if sentinel else [])]
        with (place / "log").open("wb") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _agreed(self) -> bool:
        try:
            for port in self._sentinels:
                with redis.Redis(HERE, port) as sentinel:
                    state = sentinel.sentinel_masters()[NAME]
                    if state["num-other-sentinels"] != 2 or not sentinel.sentinel_slaves(NAME):
                        return False
        except redis.ConnectionError:
            return False
        return True

    def successor(self) -> bool:
        """Whether all Sentinels name the other one."""
        named = set()
        for port in self._sentinels:
            with redis.Redis(HERE, port) as sentinel:
                named.add(int(sentinel.sentinel_get_master_addr_by_name(NAME)[1]))
        return named == {self._heir}

    @contextmanager
    def hung(self) -> Iterator[None]:
        """The host of the primary is cut off inside."""
        ip(f"-n {self._space} route add blackhole {HERE}/32")
        try:
            yield
        finally:
            ip(f"-n {self._space} route del blackhole {HERE}/32")

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        subprocess.run(["ip", "netns", "del", self._space], check=False)


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)
