"""Queues on a Redis Cluster, as the tests of pools there use them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from rqueue.inspector.history import read_history
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands import Put
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import open_client
from rqueue.transport.routed_connection import connection_for
from tests.support.redis_cluster import ClusterNode, SmallCluster
from tests.workers.pools import eventually

R = TypeVar("R")


class ClusterQueue:
    """One queue, wherever it is."""

    def __init__(self, cluster: SmallCluster, name: str) -> None:
        self.name = name
        self.keys = QueueKeys(name)
        self._cluster = cluster
        self._client = open_client(cluster.cluster_url)
        self._connection = connection_for(self._client, self.keys)
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self._connection.close()
        self._client.close()

    def run(self, call: ScriptCall[R]) -> R:
        return self._connection.run(call, queue=self.name)

    def send(self, task: str, *args: Any, **terms: Any) -> str:
        """Enqueue a job; its id."""
        id_ = f"{self.name}-{next(self._numbers)}"
        self.run(commands.enqueue(self.keys, [Put(id_, orjson.dumps([task, args]), **terms)]))
        return id_

    @property
    def node(self) -> ClusterNode:
        """Where it is."""
        return self._cluster.home(self.name)

    def consumers(self) -> int:
        """How many are registered."""
        with self.node.client() as client:
            return int(client.zcard(self.keys.consumers))  # type: ignore[arg-type]

    def outcomes(self, id_: str) -> list[str]:
        """What became of a job, attempt by attempt."""
        with self.node.client() as client:
            rows = read_history(client, self.keys)
            return [row["outcome"] for row in rows if row["id"] == id_]

    def acked(self, id_: str) -> None:
        """Wait until a job has ended well, and nothing else has."""
        eventually(lambda: "ack" in self.outcomes(id_), lambda: f"{id_}: {self.outcomes(id_)}")
        assert Counter(self.outcomes(id_))["ack"] == 1


@contextmanager
def queues_of(cluster: SmallCluster, name: str) -> Iterator[list[ClusterQueue]]:
    """One on each master."""
    queues = [ClusterQueue(cluster, one) for one in cluster.queues_everywhere(name)]
    try:
        yield queues
    finally:
        for queue in queues:
            queue.close()
