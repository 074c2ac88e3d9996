"""Shards open and are drained under load while workers and servers are killed: nothing is lost,
everything ends once, and the jobs of each key in their order."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from tests.crash.shard_load import Load, Pools, changed, judge
from tests.support.redis_cluster import SmallCluster
from tests.workers.pools import eventually

pytestmark = pytest.mark.timeout(300)

SEEDS = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 11))]
)


def rounds(queue: ShardedQueue, pools: Pools, load: Load, jobs: int = 0) -> None:
    """Two shards open, then one is drained, each behind so many more jobs; a worker is killed after
    each."""
    for change in (queue.open, queue.open, partial(queue.drain, 0)):
        enough = load.enqueued() + jobs
        eventually(lambda enough=enough: load.enqueued() >= enough, lambda: pools.logs)
        eventually(partial(changed, change), lambda: f"{queue.table()}\n{pools.logs}")
        pools.kill_a_worker()


@pytest.mark.parametrize("jobs", [0, pytest.param(4000, marks=pytest.mark.long)])
def test_shards_open_under_load(
    private_server: EmbeddedRedis, queue_name: str, tmp_path: Path, jobs: int
) -> None:
    url = private_server.url
    with (
        ShardedQueue(queue_name, url, shards=2) as queue,
        Queue(queue_name, url) as plain,
        Pools(tmp_path, random.Random(queue_name)) as pools,
    ):
        queue.table()
        pools.start(url, queue_name)
        load = Load(plain)
        rounds(queue, pools, load, jobs)
        judge(queue, load, pools)
        eventually(lambda: queue.table().shards[0].state == "closed")
        assert load.failures == 0
        assert len({queue.table().shard_of(key).number for key in load.ids}) == 3


@SEEDS
def test_shards_on_the_masters_of_a_cluster(
    make_cluster: Callable[..., SmallCluster], tmp_path: Path, seed: int
) -> None:
    """Slots of shards lie where chance has put them: one pool serves them all."""
    cluster, name = make_cluster(), f"spread{seed}"
    url = cluster.cluster_url
    with (
        ShardedQueue(name, url, shards=3) as queue,
        Queue(name, url) as plain,
        Pools(tmp_path, random.Random(seed)) as pools,
    ):
        queue.table()
        pools.start(url, name)
        load = Load(plain)
        rounds(queue, pools, load)
        judge(queue, load, pools)
        shards = queue.table().shards
        assert shards[0].state == "closed" or eventually(
            lambda: queue.advance().shards[0].state == "closed"
        )
        assert len({cluster.home(f"{name}~{number}").address for number in shards}) > 1


@SEEDS
def test_shards_on_servers_of_their_own(
    make_server: Callable[..., EmbeddedRedis], queue_name: str, tmp_path: Path, seed: int
) -> None:
    """Each is served by a pool of its own server, of which one dies and comes back."""
    here, *others = [make_server(port=0, config={"appendfsync": "always"}) for _ in range(3)]
    with (
        ShardedQueue(queue_name, here.url, shards=1) as queue,
        Queue(queue_name, here.url) as plain,
        Pools(tmp_path, random.Random(seed)) as pools,
    ):
        queue.table()
        pools.start(here.url, queue_name)
        load = Load(plain)
        for number, server in enumerate(others, 1):
            opens = partial(queue.open, place=server.url)
            eventually(partial(changed, opens), lambda: f"{queue.table()}\n{pools.logs}")
            pools.start(server.url, f"{queue_name}~{number}")
            pools.kill_a_worker()
        eventually(lambda: not queue.advance().moving, lambda: f"{queue.table()}\n{pools.logs}")
        others[seed % 2].kill()
        eventually(lambda: load.failures > 2)
        others[seed % 2].start()
        pools.kill_a_worker()
        eventually(partial(changed, partial(queue.drain, 1)), lambda: pools.logs)
        judge(queue, load, pools)
        eventually(lambda: queue.advance().shards[1].state == "closed")
