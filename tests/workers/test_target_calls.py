"""Calls to queues on other nodes of a cluster, by a worker that has others to see to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from rqueue.errors import ServerError
from rqueue.protocol import commands
from rqueue.protocol.forwarding import TargetAway
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.knock import SILENT_S
from rqueue.transport.redis_client import open_client
from rqueue.transport.routed_connection import connection_for
from rqueue_workers.worker.target_calls import AGAIN_S, TargetCalls
from tests.support.redis_cluster import SmallCluster
from tests.workers.pools import eventually


def test_a_target_that_hangs_is_waited_for_once(
    make_cluster: Callable[..., SmallCluster], queue_name: str
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    near, far, _ = map(QueueKeys, cluster.queues_everywhere(queue_name))
    limit = 1.0
    client = open_client(cluster.cluster_url, socket_connect_timeout=limit)
    connection = connection_for(client, near, limit, slot_wait=0.0)
    targets = TargetCalls(connection)
    hung = cluster.home(far.queue).server.pid

    def ready(keys: QueueKeys) -> int:
        call = commands.counts(keys)
        way = targets.way(call)
        try:
            return way.run(call).ready
        except ServerError as error:
            raise targets.lost(call, error) from error

    def took() -> float:
        since = time.monotonic()
        with pytest.raises(TargetAway):
            ready(far)
        return time.monotonic() - since

    try:
        assert ready(near) == ready(far) == 0
        os.kill(hung, signal.SIGSTOP)
        try:
            assert took() >= limit
            over, later = time.monotonic() + 2 * (AGAIN_S + SILENT_S), []
            while time.monotonic() < over:
                later.append(took())
                assert ready(near) == 0
            assert max(later) < limit
        finally:
            os.kill(hung, signal.SIGCONT)

        def reached() -> bool:
            try:
                return ready(far) == 0
            except TargetAway:
                return False

        eventually(reached)
    finally:
        targets.close()
        connection.close()
        client.close()
