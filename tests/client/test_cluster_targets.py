"""Workflows over queues on several nodes of a Redis Cluster, run by consumers without a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.tasks.workflow import Workflow, chain
from tests.support.patience import PATIENCE, until
from tests.support.redis_cluster import SmallCluster
from tests.support.workflows import double

CLIENTS = pytest.mark.parametrize("client", ["Consumer", "AsyncConsumer"])


def through(*queues: str) -> Workflow[int]:
    return chain(*(double.options(queue=name).s(*[1][: not n]) for n, name in enumerate(queues)))


@CLIENTS
def test_a_chain_goes_through_all_nodes(
    redis_cluster: SmallCluster, queue_name: str, client: str
) -> None:
    names = redis_cluster.queues_everywhere(queue_name)

    async def main() -> None:
        async with AsyncQueue(names[-1], redis_cluster.cluster_url) as queue:
            handle = await queue.enqueue_workflow(through(*names), spread=True)
            for number, name in enumerate(names):
                async with queue.at(name).consumer(jobs=1) as consumer:
                    (job,) = await consumer.pull()
                    assert await consumer.ack(job, number)
            assert await handle.result(PATIENCE) == 2

    if client == "AsyncConsumer":
        asyncio.run(main())
        return
    with Queue(names[-1], redis_cluster.cluster_url) as queue:
        handle = queue.enqueue_workflow(through(*names), spread=True)
        for number, name in enumerate(names):
            with queue.at(name).consumer(jobs=1) as consumer:
                (job,) = consumer.pull()
                assert consumer.ack(job, number)
        assert handle.result(PATIENCE) == 2


@CLIENTS
def test_a_node_that_is_away_keeps_no_other_target(
    make_cluster: Callable[..., SmallCluster], client: str
) -> None:
    """The step brings what it can, at once, and the renewal of the lease the rest."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    here, away, third = cluster.queues_everywhere()
    with Queue(here, cluster.cluster_url) as queue:
        for target in (away, third):
            queue.at(target).enqueue_workflow(through(here, target), id=target, spread=True)
        node = cluster.home(away)

        def heard(target: str) -> bool:
            """Whether the job there waits for none any more."""
            return queue.at(target).counts().more["deferred"] == 0

        def goes_on() -> None:
            assert heard(third)
            node.server.start()
            cluster.settle()
            until(lambda: heard(away), "the word of the end", PATIENCE)

        async def main() -> None:
            async with (
                AsyncQueue(here, cluster.cluster_url) as aqueue,
                aqueue.consumer(jobs=2, lease=3.0) as consumer,
            ):
                jobs = await consumer.pull()
                assert [job.id for job in jobs] == [f"{away}.0", f"{third}.0"]
                node.server.kill()
                await consumer.settle(done=[(job, 1) for job in jobs])
                await asyncio.to_thread(goes_on)

        if client == "AsyncConsumer":
            asyncio.run(main())
            return
        with queue.consumer(jobs=2, lease=3.0) as consumer:
            jobs = consumer.pull()
            assert [job.id for job in jobs] == [f"{away}.0", f"{third}.0"]
            node.server.kill()
            consumer.settle(done=[(job, 1) for job in jobs])
            goes_on()
