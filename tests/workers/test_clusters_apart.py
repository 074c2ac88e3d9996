"""Clusters whose nodes are not where, or not as plain, as a client first finds them: over TLS, and
behind other addresses than those that the nodes know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster

from rqueue import Options, Queue
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ServerError
from tests.support.patience import PATIENCE, until
from tests.support.proxy import Proxy
from tests.support.redis_cluster import SmallCluster
from tests.support.tls_front import Certificate, TlsFront
from tests.workers.pools import Pool, pop

MakeCluster = Callable[..., SmallCluster]


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return Certificate.made(tmp_path)


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> SmallCluster:
    return make_cluster()


@pytest.fixture
def fronts(cluster: SmallCluster, certificate: Certificate) -> Iterator[list[TlsFront]]:
    """One before each node, which tells everybody to come there."""
    made = [TlsFront(node.address, certificate) for node in cluster.members]
    for node, front in zip(cluster.members, made, strict=True):
        node.ask("CONFIG", "SET", "cluster-announce-port", front.port)
    ports = {front.port for front in made}
    until(
        lambda: all({row.port for row in node.view()} == ports for node in cluster.members),
        "that all nodes know where they are to be found",
        PATIENCE,
    )
    yield made
    for front in made:
        front.close()


@pytest.fixture
def url(fronts: list[TlsFront], certificate: Certificate) -> str:
    """One node is named."""
    return f"rediss+cluster://127.0.0.1:{fronts[0].port}?ssl_ca_certs={certificate.file}"


def test_queues_of_all_nodes_over_tls(
    cluster: SmallCluster, url: str, fronts: list[TlsFront], queue_name: str
) -> None:
    for name in cluster.queues_everywhere(queue_name):
        with Queue(name, url=url) as queue:
            queue.send("t.task", [1], options=Options(id="one"))
            with queue.consumer(jobs=2) as consumer:
                (job,) = consumer.pull()
                assert job.id == "one"
                consumer.settle(ack=[job])
            assert queue.counts().held == 0
    assert all(front.connections for front in fronts)


def test_the_same_in_asyncio(cluster: SmallCluster, url: str, queue_name: str) -> None:
    async def work(name: str) -> int:
        async with AsyncQueue(name, url=url) as queue:
            await queue.send("t.task", [1], options=Options(id="one"))
            async with queue.consumer(jobs=2) as consumer:
                (job,) = await consumer.pull()
                assert job.id == "one"
                await consumer.settle(ack=[job])
            return (await queue.counts()).held

    for name in cluster.queues_everywhere(queue_name):
        assert asyncio.run(work(name)) == 0


def test_a_pool_over_tls(
    cluster: SmallCluster,
    url: str,
    make_pool: Callable[..., Pool],
    server: EmbeddedRedis,
    client: redis.Redis,
    queue_name: str,
) -> None:
    names = cluster.queues_everywhere(queue_name)
    pool = make_pool(url, queues=names, tell=server.url)
    for name in names:
        with Queue(name, url=url) as queue:
            for number in range(3):
                queue.send("note", [f"{name}-heard", str(number)])
                assert pop(client, f"{name}-heard") == str(number)
    assert "gone" not in pool.log
    assert pool.drained() == 0


def test_a_certificate_of_nobody_whom_we_trust_is_refused(
    fronts: list[TlsFront], queue_name: str
) -> None:
    url = f"rediss+cluster://127.0.0.1:{fronts[0].port}"
    with Queue(queue_name, url=url) as queue, pytest.raises(ServerError, match="certificate"):
        queue.send("t.task")


def test_nodes_behind_a_nat_are_found_by_a_remapped_address(
    cluster: SmallCluster, queue_name: str
) -> None:
    """They say addresses of their own network: a client of one's own knows what these are here."""
    proxies = [Proxy(node.address) for node in cluster.members]
    here = {
        node.address: ("127.0.0.1", proxy.port)
        for node, proxy in zip(cluster.members, proxies, strict=True)
    }
    try:
        with RedisCluster(
            host="127.0.0.1", port=proxies[0].port, address_remap=lambda there: here[there]
        ) as client:
            for name in cluster.queues_everywhere(queue_name):
                with Queue(name, redis=client) as queue:
                    queue.send("t.task", options=Options(id="one"))
                    assert queue.counts().ready == 1
        assert all(proxy.connections for proxy in proxies)
    finally:
        for proxy in proxies:
            proxy.close()
