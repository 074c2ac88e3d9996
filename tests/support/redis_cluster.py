"""A real Redis Cluster of small servers on the loopback interface, its masters with replicas.

`tests/support/slot_moves.py` moves its slots.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest
import redis
from redis.cluster import RedisCluster
from redis.crc import key_slot

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, EmbeddedRedisError
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.cluster_client import check_redis_py
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_node_port
from tests.support.redis_server import MissingServer, Servers

MASTERS = 3
SLOTS = 16384
NODE_TIMEOUT_MS = 2000
"""How long a master with replicas is silent before it counts as dead: less, and a busy machine
makes dead ones of the living."""


class ClusterNode:
    """One server of a cluster; master or replica, which may change."""

    def __init__(self, server: EmbeddedRedis, password: str | None) -> None:
        self.server = server
        self.password = password
        self.port = port_of(server)
        self._asking = self.client()
        self.id: str = self.ask("CLUSTER", "MYID").decode()

    def __repr__(self) -> str:
        return f"ClusterNode({self.port}, {self.id[:6]}, alive={self.alive})"

    @property
    def alive(self) -> bool:
        return self.server.alive

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def client(self, **options: Any) -> redis.Redis:
        """A plain client of this node: it goes nowhere else."""
        return redis.Redis(port=self.port, password=self.password, **options)

    def ask(self, *words: object) -> Any:
        """One command, over a connection of the node's own: it is asked again and again."""
        return self._asking.execute_command(*words)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End the server, and what it is asked over."""
        self._asking.close()
        self.server.kill()  # a request would be waited for, by a master for its replicas
        self.server.stop()

    def info(self) -> dict[str, str]:
        """What CLUSTER INFO says."""
        said = self.ask("CLUSTER", "INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in said if ":" in line)

    def view(self) -> list[NodeView]:
        """The cluster as this node sees it."""
        return [NodeView(line) for line in self.ask("CLUSTER", "NODES").decode().splitlines()]


class NodeView:
    """One row of CLUSTER NODES."""

    def __init__(self, line: str) -> None:
        self.id, address, flags, master, _, _, _, self.link, *slots = line.split(" ")
        self.port = int(address.partition("@")[0].rpartition(":")[2])
        self.flags = flags.split(",")
        self.master = "" if master == "-" else master
        self.open = [word for word in slots if word.startswith("[")]
        """Slots under way, as `[93-<-id]` (importing) and `[93->-id]` (migrating)."""
        self.ranges = tuple(word for word in slots if not word.startswith("["))
        """Its slots as they are written: `7` or `5-9`."""

    @cached_property
    def slots(self) -> list[int]:
        """Its slots, each for itself."""
        found: list[int] = []
        for word in self.ranges:
            first, _, last = word.partition("-")
            found += range(int(first), int(last or first) + 1)
        return found


class SmallCluster:
    """Every slot is served. `url` is the plain address of one node, `cluster_url` names all.

    - `replicas`: how many each master has; with one or more a dead master is replaced by itself.
    - `name`: the kind of server, as tests/support/redis_server.py knows it.
    - further settings are the nodes' (`cluster-require-full-coverage`, `requirepass` ...).
    """

    def __init__(
        self,
        servers: Servers,
        *,
        name: str = "newest",
        masters: int = MASTERS,
        replicas: int = 0,
        node_timeout_ms: int = 0,
        **config: str | int,
    ) -> None:
        timeout = node_timeout_ms or (NODE_TIMEOUT_MS if replicas else 5000)
        self._config = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": timeout,
            "repl-diskless-sync-delay": 0,
            **config,
        }
        self._password = str(config["requirepass"]) if "requirepass" in config else None
        if self._password:
            self._config.setdefault("masterauth", self._password)
        self.members: list[ClusterNode] = []
        try:
            for _ in range(masters * (1 + replicas)):
                self.members.append(self._node(servers, name))
            self._join(masters)
        except BaseException:
            self.stop()
            raise

    def _node(self, servers: Servers, name: str) -> ClusterNode:
        while True:
            port = free_node_port()
            server = servers.make(name, port=port, config=self._config)
            try:
                return ClusterNode(server.start(), self._password)
            except EmbeddedRedisError as error:
                server.stop()
                if "in use" not in str(error):
                    raise

    def _join(self, masters: int) -> None:
        for number, node in enumerate(self.members[:masters]):
            slots = range(number * SLOTS // masters, (number + 1) * SLOTS // masters)
            node.ask("CLUSTER", "ADDSLOTS", *slots)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.members[1:]:
            self.members[0].ask("CLUSTER", "MEET", *node.address)
        until(self.agreed, "that the cluster's nodes find each other", PATIENCE)
        for number, replica in enumerate(self.members[masters:]):
            replica.ask("CLUSTER", "REPLICATE", self.members[number % masters].id)
        self.settle()

    @property
    def nodes(self) -> list[EmbeddedRedis]:
        """The servers, masters first as they were at the start."""
        return [node.server for node in self.members]

    @property
    def url(self) -> str:
        return self.members[0].server.tcp_url

    @property
    def cluster_url(self) -> str:
        """`redis+cluster://` of all nodes, with the password if there is one."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.members)
        return f"redis+cluster://{f':{self._password}@' if self._password else ''}{hosts}"

    @property
    def living(self) -> list[ClusterNode]:
        return [node for node in self.members if node.alive]

    def client(self, **options: Any) -> RedisCluster:
        """redis-py's client of the whole cluster."""
        node = self.living[0]
        return RedisCluster(host="127.0.0.1", port=node.port, password=self._password, **options)

    def masters(self) -> list[ClusterNode]:
        """The living ones that serve slots, in the order of their first slots."""
        rows = [row for row in self.living[0].view() if row.slots]
        rows.sort(key=lambda row: row.slots[0])
        found = {node.id: node for node in self.living}
        return [found[row.id] for row in rows if row.id in found]

    def replicas(self, master: ClusterNode) -> list[ClusterNode]:
        """The living replicas of a master."""
        rows = {row.id for row in self.living[0].view() if row.master == master.id}
        return [node for node in self.living if node.id in rows]

    def slots(self, node: ClusterNode) -> list[int]:
        """What a node says it serves itself."""
        return next(row.slots for row in node.view() if "myself" in row.flags)

    def master_of(self, slot: int) -> ClusterNode:
        """The node that says it serves a slot; of several, the one whose word is newest."""
        said = [node for node in self.living if slot in self.slots(node)]
        assert said, f"nobody serves slot {slot}"
        return max(said, key=lambda node: int(node.info()["cluster_my_epoch"]))

    def home(self, queue: str, namespace: str = "rqueue") -> ClusterNode:
        """The node of a queue."""
        return self.master_of(slot_of(queue, namespace))

    def queue_on(
        self, node: ClusterNode, like: str = "queue", *, namespace: str = "rqueue", nth: int = 0
    ) -> str:
        """A name for a queue that a node serves. nth: the first one, the second ..."""
        slots = set(self.slots(node))
        fit = (name for name in names(like) if slot_of(name, namespace) in slots)
        return next(itertools.islice(fit, nth, None))

    def queues_everywhere(self, like: str = "queue", *, namespace: str = "rqueue") -> list[str]:
        """Names for queues, one on each master."""
        return [self.queue_on(node, like, namespace=namespace) for node in self.masters()]

    def agreed(self) -> bool:
        """Whether all living nodes say that all slots are served, by the same, and none is under
        way."""
        known = str(len(self.members))
        seen = set()
        for node in self.living:
            info = node.info()
            if info["cluster_state"] != "ok" or info["cluster_known_nodes"] != known:
                return False
            rows = node.view()
            if any(row.open for row in rows):
                return False
            seen.add(tuple(sorted((row.id, row.master, row.ranges) for row in rows)))
        return len(seen) == 1

    def settle(self) -> None:
        """Wait until all living nodes agree, and each replica is up to date with its master."""
        until(self.agreed, "that the cluster's nodes agree", PATIENCE)
        for node in self.living:
            until(lambda node=node: _linked(node), "a replica up to date", PATIENCE)  # type: ignore[misc]

    def kill_master(self, master: ClusterNode) -> tuple[ClusterNode, float]:
        """Kill it as a power cut would and wait for the promotion of a replica; the new master, and
        when (monotonic time) it said that it serves the slots."""
        slot = self.slots(master)[0]
        heirs = self.replicas(master)
        assert heirs, "it has no replica"
        master.server.kill()

        def promoted() -> bool:
            return any(slot in self.slots(node) for node in heirs)

        until(promoted, "a promotion", PATIENCE)
        return self.master_of(slot), time.monotonic()

    def bring_back(self, node: ClusterNode) -> None:
        """Start a node that was killed, and wait until the cluster is whole again: who was a master
        is a replica now if another took its place."""
        node.server.start()
        self.settle()

    def stop(self) -> None:
        for node in self.members:
            node.stop()


def _linked(node: ClusterNode) -> bool:
    with node.client() as client:
        said = client.info("replication")
    return said["role"] == "master" or said["master_link_status"] == "up"


def slot_of(queue: str, namespace: str = "rqueue") -> int:
    """The slot of a queue's keys."""
    return key_slot(QueueKeys(queue, namespace).meta.encode())


def names(like: str) -> Iterator[str]:
    """`like`, `like-1`, `like-2` ..."""
    yield like
    for number in itertools.count(1):
        yield f"{like}-{number}"


def queue_in(slot: int, like: str = "queue", namespace: str = "rqueue") -> str:
    """A name for a queue in one slot; found after some ten thousand tries, in a tenth of a
    second."""
    return next(name for name in names(like) if slot_of(name, namespace) == slot)


def port_of(server: EmbeddedRedis) -> int:
    return int(server.tcp_url.rpartition(":")[2].partition("/")[0])


def _need_redis_py() -> None:
    """Skip what needs a client of a cluster, if redis-py has none that will do."""
    try:
        check_redis_py()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis_cluster(servers: Servers) -> Iterator[SmallCluster]:
    """Three masters without replicas, shared by all tests: use a namespace of your own, leave its
    nodes alive and its slots where they are in the end."""
    _need_redis_py()
    cluster = SmallCluster(servers)
    yield cluster
    cluster.stop()


@pytest.fixture
def make_cluster(servers: Servers, server_name: str) -> Iterator[Callable[..., SmallCluster]]:
    """Makes clusters of this test alone, of the kind of server that the test is for; takes what
    `SmallCluster` takes."""
    _need_redis_py()
    made: list[SmallCluster] = []

    def make(**options: Any) -> SmallCluster:
        options.setdefault("name", server_name)
        try:
            made.append(SmallCluster(servers, **options))
        except MissingServer as missing:
            pytest.fail(str(missing), pytrace=False)
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


@pytest.fixture
def replicated_cluster(make_cluster: Callable[..., SmallCluster]) -> SmallCluster:
    """Three masters with a replica each, of this test alone. A master that is away stops nobody
    else: `cluster-require-full-coverage no`."""
    return make_cluster(replicas=1, **{"cluster-require-full-coverage": "no"})
