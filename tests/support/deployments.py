"""Where tests of the inspector and of the command line run: on one server, and whole once more on a
Redis Cluster (mark `long`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import redis

from tests.support.redis_cluster import SmallCluster
from tests.support.redis_server import Servers

ONE, CLUSTER = "one", "cluster"

EVERYWHERE = [ONE, pytest.param(CLUSTER, marks=pytest.mark.long)]

one_server = pytest.mark.parametrize("deployment", [ONE], indirect=True)
"""For tests that are about a single server: its settings, its folder, what it says of itself."""


class WholeCluster:
    """In the place of a server, for tests that ask one for its address only."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.url = self.tcp_url = cluster.cluster_url


@pytest.fixture(params=EVERYWHERE)
def deployment(request: pytest.FixtureRequest) -> str:
    """One of `EVERYWHERE`."""
    found: str = request.param
    return found


@pytest.fixture(name="server")
def deployed_server(
    deployment: str, request: pytest.FixtureRequest, servers: Servers, server_name: str
) -> Any:
    """One server, or a cluster in its place."""
    if deployment == CLUSTER:
        return WholeCluster(request.getfixturevalue("redis_cluster"))
    return servers.get(server_name)


@pytest.fixture(name="client")
def deployed_client(server: Any) -> Iterator[redis.Redis]:
    """A client of the server, or of the whole cluster."""
    if isinstance(server, WholeCluster):
        with server.cluster.client() as nodes:
            yield cast("redis.Redis", nodes)
    else:
        with redis.Redis.from_url(server.url) as one:
            yield one
