"""Pools on a Redis Cluster: what one queue has to do with another one is done between nodes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue_workers.worker.under_way import ANSWER_S
from tests.support.redis_cluster import SmallCluster
from tests.workers.cluster_queues import ClusterQueue, queues_of
from tests.workers.pools import Pool, eventually, go, pop, started

HOPS = 12


@pytest.fixture
def queues(redis_cluster: SmallCluster, queue_name: str) -> Iterator[list[ClusterQueue]]:
    """Three queues, each on another master."""
    with queues_of(redis_cluster, queue_name) as made:
        yield made


@pytest.fixture
def pool_of(
    make_pool: Callable[..., Pool], server: EmbeddedRedis, redis_cluster: SmallCluster
) -> Callable[..., Pool]:
    """Starts a pool for some queues; its jobs speak to the test over a server that is no part of
    the cluster."""

    def make(
        queues: list[ClusterQueue], cluster: SmallCluster = redis_cluster, **options: Any
    ) -> Pool:
        names = [queue.name for queue in queues]
        return make_pool(cluster.cluster_url, queues=names, tell=server.url, **options)

    return make


def test_a_chain_of_jobs_goes_to_and_fro_between_nodes(
    queues: list[ClusterQueue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    """Each is enqueued by the step that acks the one before, into a queue on another node."""
    here, there, _ = queues
    pool = pool_of(queues, app=["tests.workers.transactions_app"])
    here.send("hop", queue_name, here.name, there.name, HOPS)
    assert [int(pop(client, queue_name)) for _ in range(HOPS + 1)] == list(range(HOPS, -1, -1))
    assert pool.drained() == 0


def test_a_job_that_kills_its_worker_is_charged_and_what_ran_beside_it_is_not_lost(
    queues: list[ClusterQueue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    guilty, beside, idle = queues
    pool = pool_of(queues, threads=2)
    waiting = beside.send("hold", queue_name)
    first = started(client, queue_name)
    dying = guilty.send("die", f"{queue_name}-die", "SIGKILL", max_deliveries=1)
    assert int(pop(client, f"{queue_name}-die")) == first
    again = started(client, queue_name)
    assert again != first
    go(client, queue_name)
    beside.acked(waiting)
    eventually(lambda: guilty.outcomes(dying) == ["dead"], lambda: f"{guilty.outcomes(dying)}")
    idle.acked(idle.send("note", f"{queue_name}-note", "well"))
    assert pool.drained() == 0


def test_dead_letters_go_to_a_queue_on_another_node(
    queues: list[ClusterQueue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    source, target, _ = queues
    source.run(commands.configure(source.keys, {"dead_to": target.name}))
    pool = pool_of(queues[:1], app=["tests.workers.child_app"])
    source.send("c.fail_once_at_most")
    eventually(lambda: target.run(commands.counts(target.keys)).ready == 1)
    assert pool.drained() == 0


def test_dead_letters_wait_for_a_node_that_is_away_and_nothing_else_does(
    make_cluster: Callable[..., SmallCluster],
    pool_of: Callable[..., Pool],
    queue_name: str,
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    with queues_of(cluster, queue_name) as (source, far, _):
        source.run(commands.configure(source.keys, {"dead_to": far.name}))
        pool = pool_of([source], cluster, app=["tests.workers.child_app"], lease="2s")
        gone = far.node
        gone.server.kill()
        source.send("c.fail_once_at_most")
        pool.said("c.fail_once_at_most")
        source.acked(source.send("c.echo", 1))
        gone.server.start()
        cluster.settle()
        eventually(lambda: far.run(commands.counts(far.keys)).ready == 1, lambda: pool.log)
        assert pool.drained() == 0


def test_dead_letters_for_a_node_that_hangs_do_not_delay_what_else_is_in_their_queue(
    make_cluster: Callable[..., SmallCluster],
    pool_of: Callable[..., Pool],
    queue_name: str,
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    with queues_of(cluster, queue_name) as (source, far, _):
        source.run(commands.configure(source.keys, {"dead_to": far.name}))
        pool = pool_of([source], cluster, app=["tests.workers.child_app"], processes=1)
        source.send("c.fail_once_at_most")  # there is a connection to the node from here on
        eventually(lambda: far.run(commands.counts(far.keys)).ready == 1, lambda: pool.log)
        hung = far.node.server.pid
        with source.node.client() as client:
            os.kill(hung, signal.SIGSTOP)
            try:
                since = time.monotonic()
                source.send("c.fail_once_at_most")
                echo = source.send("c.echo", 2)
                eventually(lambda: client.hget(source.keys.jobs, echo) is None)
                took = time.monotonic() - since
            finally:
                os.kill(hung, signal.SIGCONT)
        assert took < ANSWER_S / 2
        eventually(lambda: far.run(commands.counts(far.keys)).ready == 2, lambda: pool.log)
        assert pool.drained() == 0


def test_a_job_reports_to_its_own_node(
    queues: list[ClusterQueue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    pool = pool_of(queues, app=["tests.workers.reporting_app"])
    for queue in queues:
        key = f"{queue_name}-{queue.name}"
        id_ = queue.send("c.pages", key)
        assert pop(client, key) == "in"
        eventually(lambda queue=queue, id_=id_: _reported(queue, id_))
        client.rpush(f"{key}:go", 1, 1)
        queue.acked(id_)
    assert pool.drained() == 0


def _reported(queue: ClusterQueue, id_: str) -> bool:
    with queue.node.client() as client:
        found: int = client.exists(queue.keys.progress(id_))  # type: ignore[assignment]
    return bool(found)


def test_what_is_on_other_nodes_is_served_from_the_start_and_the_rest_when_its_node_is_back(
    make_cluster: Callable[..., SmallCluster],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    with queues_of(cluster, queue_name) as queues:
        away = queues[0].node
        away.server.kill()
        pool = pool_of(queues, cluster, patience="1s")
        pool.said("the queues there are served when it is back")
        for queue in queues[1:]:
            queue.acked(queue.send("note", queue_name, "well"))
        away.server.start()
        cluster.settle()
        queues[0].acked(queues[0].send("note", queue_name, "late"))
        assert pool.drained() == 0
        assert [queue.consumers() for queue in queues] == [0, 0, 0]


def test_a_pool_leaves_while_a_node_is_away(
    make_cluster: Callable[..., SmallCluster],
    pool_of: Callable[..., Pool],
    queue_name: str,
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    with queues_of(cluster, queue_name) as queues:
        pool = pool_of(queues, cluster)
        pool.said("is ready")
        queues[0].node.server.kill()
        pool.said("is gone")
        pool.send(signal.SIGTERM)
        assert pool.ended() == 0
        assert [queue.consumers() for queue in queues[1:]] == [0, 0]


def test_an_idle_pool_sends_no_more_to_a_node_than_to_a_server(
    queues: list[ClusterQueue], pool_of: Callable[..., Pool]
) -> None:
    """A renewal for each queue, and a wait of a minute for each listening connection."""
    pool = pool_of(queues, lease="3s")
    pool.said("is ready")
    eventually(lambda: all(queue.consumers() == 1 for queue in queues))
    before = [_calls(queue) for queue in queues]
    # the first of each may have begun before
    eventually(
        lambda: all(
            now["evalsha"] >= then["evalsha"] + 3
            for now, then in zip(map(_calls, queues), before, strict=True)
        )
    )
    for now, then in zip(map(_calls, queues), before, strict=True):
        assert now["blpop"] == then["blpop"]
        assert now["evalsha"] <= then["evalsha"] + 5
    assert pool.drained() == 0


def _calls(queue: ClusterQueue) -> dict[str, int]:
    with queue.node.client() as client:
        stats: Any = client.info("commandstats")
    return {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "blpop")}
