"""Where tests of the inspector and of the command line run: on one server, and whole once more on a
Redis Cluster (mark `long`)."""

from __future__ import annotations

import pytest

from tests.support.redis_cluster import SmallCluster

ONE, CLUSTER = "one", "cluster"

EVERYWHERE = [ONE, pytest.param(CLUSTER, marks=pytest.mark.long)]

one_server = pytest.mark.parametrize("deployment", [ONE], indirect=True)
"""For tests that are about a single server: its settings, its folder, what it says of itself."""


class WholeCluster:
    """In the place of a server, for tests that ask one for its address only."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.url = self.tcp_url = cluster.cluster_url
