"""A real Redis Cluster of three small servers on the loopback interface."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import redis
from redis.cluster import RedisCluster

from rqueue.embedded.server import EmbeddedRedis
from tests.support.redis_server import Servers

NODES = 3
SLOTS = 16384


class SmallCluster:
    """Every slot is served; no replicas. `url` is the address of one of the nodes."""

    def __init__(self, servers: Servers) -> None:
        self.nodes: list[EmbeddedRedis] = []
        try:
            for _ in range(NODES):
                config = {
                    "cluster-enabled": "yes",
                    "cluster-port": free_port(),
                    "cluster-node-timeout": 5000,
                }
                self.nodes.append(servers.make("newest", port=0, config=config).start())
            self._join()
        except BaseException:
            self.stop()
            raise

    def _join(self) -> None:
        clients = [redis.Redis.from_url(node.tcp_url) for node in self.nodes]
        for number, client in enumerate(clients):
            first, last = number * SLOTS // NODES, (number + 1) * SLOTS // NODES - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            with redis.Redis.from_url(node.tcp_url) as other:
                bus = other.config_get("cluster-port")["cluster-port"]
            port = node.tcp_url.rpartition(":")[2].partition("/")[0]
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        deadline = time.monotonic() + 30
        pause = threading.Event()
        # The nodes tell nobody when they agree.
        while not all(_agrees(client) for client in clients):
            assert time.monotonic() < deadline, "the cluster's nodes do not find each other"
            pause.wait(0.05)
        for client in clients:
            client.close()

    @property
    def url(self) -> str:
        return self.nodes[0].tcp_url

    def client(self) -> RedisCluster:
        return RedisCluster.from_url(self.url)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def _agrees(client: redis.Redis) -> bool:
    said = client.execute_command("CLUSTER", "INFO").decode().splitlines()
    return {"cluster_state:ok", f"cluster_known_nodes:{NODES}"} <= set(said)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def redis_cluster(servers: Servers) -> Iterator[SmallCluster]:
    """Shared by all tests: use a namespace of your own."""
    cluster = SmallCluster(servers)
    yield cluster
    cluster.stop()
