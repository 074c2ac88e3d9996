"""The client on a Redis Cluster: queues in different slots, on different nodes, from one place."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import redis.asyncio
from redis.cluster import RedisCluster

import rqueue
from rqueue import Call, Options, errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.transport.node_connections import NodeConnections
from tests.support.patience import PATIENCE, until
from tests.support.redis_cluster import SmallCluster, slot_of
from tests.support.slot_moves import move_slot

NAMESPACE = "client-cluster"


@pytest.fixture
def names(redis_cluster: SmallCluster) -> Iterator[list[str]]:
    """Six queues, two on each node, in six slots."""
    nodes = redis_cluster.masters()
    yield [
        redis_cluster.queue_on(node, f"of-{nth}", namespace=NAMESPACE)
        for nth in range(2)
        for node in nodes
    ]
    with redis_cluster.client() as client:
        for key in client.scan_iter(match=f"{NAMESPACE}:*", count=10_000):
            client.unlink(key)


@pytest.fixture(params=["url", "client"])
def queue(
    request: pytest.FixtureRequest, redis_cluster: SmallCluster, names: list[str]
) -> Iterator[Queue]:
    if request.param == "url":
        with Queue(names[0], redis_cluster.cluster_url, namespace=NAMESPACE) as queue:
            yield queue
        return
    with (
        redis_cluster.client() as client,
        Queue(names[0], redis=client, namespace=NAMESPACE) as queue,
    ):
        yield queue


def test_jobs_of_all_nodes(queue: Queue, names: list[str]) -> None:
    queues = [queue.at(name) for name in names]
    handles = [one.send("t", [number]) for number, one in enumerate(queues)]
    assert all(handle.created for handle in handles)
    for number, one in enumerate(queues):
        with one.consumer(jobs=10) as consumer:
            (job,) = consumer.pull()
            consumer.ack(job, number)
    assert [handle.result(PATIENCE) for handle in handles] == list(range(len(names)))


def test_a_thread_has_a_connection_for_each_node(queue: Queue, names: list[str]) -> None:
    for _ in range(2):
        for name in names * 3:
            queue.at(name).send("t")
    assert isinstance(queue._transport, NodeConnections)
    mine = queue._transport._free
    assert len({connection.address for connection in mine}) == len(mine) == 3
    assert len(queue._transport._all) == 3, "none was left on the way"


def test_many_jobs_in_steps_under_way_at_once(queue: Queue, names: list[str]) -> None:
    other = queue.at(names[-1])

    def calls() -> Iterator[Call]:
        for number in range(600):
            if number == 300:
                other.send("t")  # while a step of this thread is under way
            yield Call("t", (number,))

    for name in names[:3]:
        one = queue.at(name)
        assert len(one.enqueue_many(calls())) == 600
        assert one.counts().ready == 600
    assert other.counts().ready == 3
    assert isinstance(queue._transport, NodeConnections)
    assert len({connection.address for connection in queue._transport._free}) == 3


def test_background_puts(queue: Queue, names: list[str]) -> None:
    with queue.at(names[0]).putter() as first, queue.at(names[1]).putter() as second:
        handles = [putter.put("t", number) for number in range(500) for putter in (first, second)]
        assert [handle.wait_stored(30) for handle in handles[-2:]] == [True, True]
    assert [queue.at(name).counts().ready for name in names[:2]] == [500, 500]


def test_a_transaction_goes_to_other_nodes_by_the_outbox(queue: Queue, names: list[str]) -> None:
    queue.send("work")
    with queue.consumer(jobs=10) as consumer:
        (job,) = consumer.pull()
        with queue.transaction(consumer) as step:
            step.ack(job)
            step.send("own")
            for name in names[1:4]:
                step.at(queue.at(name)).send("other")
    assert [queue.at(name).counts().ready for name in names[:4]] == [1, 1, 1, 1]


def test_jobs_move_to_another_node(queue: Queue, names: list[str]) -> None:
    target = queue.at(names[1])
    target.configure()
    queue.enqueue_many(Call("t", (number,)) for number in range(20))
    assert queue.move_all(names[1]) == 20
    assert (queue.counts().ready, target.counts().ready) == (0, 20)


def test_dead_letters_go_to_a_queue_on_another_node(queue: Queue, names: list[str]) -> None:
    dead = queue.at(names[2])
    dead.configure()
    queue.configure(dead_to=names[2])
    queue.send("t")
    with queue.consumer() as consumer:
        (job,) = consumer.pull()
        consumer.reject(job, "no")
    assert dead.counts().ready == 1


def test_a_consumer_is_woken(queue: Queue, names: list[str]) -> None:
    for name in names[:3]:
        one = queue.at(name)
        with one.consumer(jobs=1) as consumer:
            assert consumer.pull() == []
            sender = threading.Thread(target=one.send, args=("t",))
            sender.start()
            woken = consumer.wait(20)
            sender.join()
            assert [wake.kind for wake in woken] == ["job"]


def test_a_forked_child_has_its_own_connections(queue: Queue, names: list[str]) -> None:
    for name in names[:3]:
        queue.at(name).send("t")
    child = os.fork()
    if child == 0:
        try:
            for name in names[:3]:
                queue.at(name).send("t")
        finally:
            os._exit(0)
    for name in names[:3]:
        queue.at(name).send("t")
    assert os.waitpid(child, 0)[1] == 0
    assert [queue.at(name).counts().ready for name in names[:3]] == [3, 3, 3]


def test_the_process_s_own_queues(
    redis_cluster: SmallCluster, names: list[str], no_defaults: object
) -> None:
    root = rqueue.connect(redis_cluster.cluster_url, namespace=NAMESPACE)
    assert root.send("t").created
    assert rqueue.queue(names[1]).send("t").created
    with redis_cluster.client() as client:
        rqueue.configure(redis=client, namespace=NAMESPACE)
        assert rqueue.queue(names[2]).send("t").created
    rqueue.disconnect()


def test_a_client_that_decodes_is_refused(redis_cluster: SmallCluster) -> None:
    with (
        redis_cluster.client(decode_responses=True) as client,
        pytest.raises(errors.ConfigError, match="decode_responses"),
    ):
        Queue("q", redis=client)
    with pytest.raises(errors.ConfigError, match="is not a client of redis-py"):
        Queue("q", redis=object())  # type: ignore[arg-type]


# -- asyncio ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["url", "client"])
def test_all_of_it_in_asyncio(redis_cluster: SmallCluster, names: list[str], by: str) -> None:
    async def play(root: AsyncQueue) -> None:
        queues = [root.at(name) for name in names]
        sent = [one.send("t", [n]) for n, one in enumerate(queues) for _ in range(5)]
        handles = await asyncio.gather(*sent)
        for one in queues:
            async with one.consumer(jobs=100) as consumer:
                jobs = await consumer.pull()
                assert len(jobs) == 5
                for job in jobs:
                    await consumer.ack(job, one.name)
        assert [await handle.result(PATIENCE) for handle in handles] == [
            one.name for one in queues for _ in range(5)
        ]
        for one in queues[:3]:
            await one.enqueue_many(Call("t", (number,)) for number in range(600))
            async with one.putter() as putter:
                for number in range(100):
                    await putter.put("t", number)
            assert (await one.counts()).ready == 700
            async with one.consumer(jobs=1, renew=False) as consumer:
                await consumer.pull()
        queue, idle = queues[0], queues[4]
        async with idle.consumer(jobs=1) as consumer:
            assert await consumer.pull() == []
            waiting = asyncio.create_task(consumer.wait(20))
            await idle.send("t")
            assert [wake.kind for wake in await waiting] == ["job"]
        async with queue.transaction() as step:
            step.send("own")
            step.at(queues[1]).send("other")
        assert (await queues[1].counts()).ready == 701

    async def main() -> None:
        if by == "url":
            async with AsyncQueue(names[0], redis_cluster.cluster_url, namespace=NAMESPACE) as root:
                await play(root)
        else:
            client = redis.asyncio.RedisCluster.from_url(redis_cluster.url)
            async with AsyncQueue(names[0], redis=client, namespace=NAMESPACE) as root:
                await play(root)
            await client.aclose()

    asyncio.run(main())


def test_many_tasks_at_once_have_their_turns_at_each_node(
    redis_cluster: SmallCluster, names: list[str]
) -> None:
    async def main() -> None:
        async with AsyncQueue(names[0], redis_cluster.cluster_url, namespace=NAMESPACE) as root:
            sent = [root.at(name).send("t") for _ in range(20) for name in names]
            assert all(handle.created for handle in await asyncio.gather(*sent))

    asyncio.run(main())


# -- while it changes ------------------------------------------------------------------------------


def test_who_waits_sends_one_command(queue: Queue, redis_cluster: SmallCluster) -> None:
    """Not one for each moment that it waits, and nothing to the other nodes."""
    with queue.consumer(jobs=1, renew=False) as consumer:
        assert consumer.pull() == []
        before = _calls(redis_cluster)
        assert not consumer.wait(1.5)
        after = _calls(redis_cluster)
    asked = {name for name, count in after.items() if count > before.get(name, 0)}
    # what a connection that is opened asks, what this test does, and what nodes ask each other
    assert asked - {"blpop", "info", "hello", "client|setinfo", "ping"} == set()
    assert after.get("blpop", 0) - before.get("blpop", 0) <= 1


def _calls(cluster: SmallCluster) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in cluster.members:
        with node.client() as client:
            for name, row in client.info("commandstats").items():
                found[name.removeprefix("cmdstat_")] += row["calls"]
    return found


def test_an_old_master_that_stays_up_is_left(replicated_cluster: SmallCluster) -> None:
    """The connections to it stay open: it says who has taken its place."""
    cluster = replicated_cluster
    name = cluster.queues_everywhere()[0]
    old = cluster.home(name)
    (heir,) = cluster.replicas(old)
    hosts = cluster.cluster_url.replace("127.0.0.1", "localhost")  # by name: nodes say addresses
    with Queue(name, hosts) as queue:
        handle = queue.send("t")
        with ThreadPoolExecutor(1) as pool, queue.consumer(jobs=5) as consumer:
            (job,) = consumer.pull()
            result = pool.submit(handle.result, PATIENCE)
            heir.ask("CLUSTER", "FAILOVER")
            until(lambda: cluster.home(name) is heir, "a failover", PATIENCE)
            until(lambda: queue.send("t").created, "an enqueue", PATIENCE)
            consumer.ack(job, "done")
            assert result.result(PATIENCE) == "done", "its wait has found the new one too"
            assert len(consumer.pull(recall=True)) == 1
        assert queue.counts().ready == 1


def test_asyncio_follows_slots_and_promotions(replicated_cluster: SmallCluster) -> None:
    cluster = replicated_cluster
    names = cluster.queues_everywhere()
    victim = cluster.home(names[0])

    async def produce(queue: AsyncQueue, accepted: list[str], stop: asyncio.Event) -> None:
        while not stop.is_set():
            id_ = f"job-{len(accepted)}"
            try:
                await queue.send("t", options=Options(id=id_, replicas=1))
            except (errors.RedisUnavailable, errors.NotConfirmed):
                await asyncio.sleep(0.05)
            else:
                accepted.append(id_)

    async def main() -> None:
        async with AsyncQueue(names[0], cluster.cluster_url) as root:
            stop = asyncio.Event()
            queues = [root.at(name) for name in names]
            accepted: list[list[str]] = [[] for _ in queues]
            producers = [
                asyncio.create_task(produce(queue, its, stop))
                for queue, its in zip(queues, accepted, strict=True)
            ]
            await asyncio.to_thread(until, lambda: all(accepted), "a job of each", PATIENCE)
            await asyncio.to_thread(move_slot, cluster, slot_of(names[1]), seed=1)
            await asyncio.to_thread(cluster.kill_master, victim)
            handle = await root.send("t", options=Options(id="last"))
            async with root.consumer(jobs=10_000) as consumer:
                waiting = asyncio.create_task(handle.result(PATIENCE))
                stop.set()
                await asyncio.gather(*producers)
                seen = []
                while jobs := await consumer.pull():
                    seen += [job.id for job in jobs]
                    await consumer.settle(done=[(job, job.id) for job in jobs])
                assert await waiting == "last"
            # one more may be stored: nobody is left to confirm it
            found = [id_ for id_ in seen if id_ != "last"]
            assert found[: len(accepted[0])] == accepted[0], "all, in order"
            assert len(found) - len(accepted[0]) <= 1
            for queue, ids in zip(queues[1:], accepted[1:], strict=True):
                assert (await queue.counts()).ready - len(ids) in (0, 1)

    asyncio.run(main())


# -- confirmed -------------------------------------------------------------------------------------


def test_an_enqueue_is_confirmed_by_the_replica_of_its_own_node(
    make_cluster: Callable[..., SmallCluster],
) -> None:
    cluster = make_cluster(replicas=1)
    names = cluster.queues_everywhere()
    safe = Options(replicas=1)
    with Queue(names[0], cluster.cluster_url) as queue:
        assert queue.send("t", options=safe).created
        (replica,) = cluster.replicas(cluster.home(names[1]))
        replica.server.kill()
        with pytest.raises((errors.RedisReadOnly, errors.NotConfirmed)):
            queue.at(names[1]).send("t", options=safe)
        assert queue.at(names[2]).send("t", options=safe).created


def test_a_client_of_replicas_too_writes_to_masters(redis_cluster: SmallCluster) -> None:
    client = RedisCluster.from_url(redis_cluster.url, reinitialize_steps=1)
    with client, Queue("of-masters", redis=client, namespace=NAMESPACE) as queue:
        assert queue.send("t").created
        queue.delete(jobs=True)


def test_a_queue_that_is_closed_leaves_no_connection(redis_cluster: SmallCluster) -> None:
    queue = Queue("closed", redis_cluster.cluster_url)
    queue.counts()
    assert isinstance(queue.redis, RedisCluster)
    queue.redis.dbsize(target_nodes=RedisCluster.PRIMARIES)
    pools = [node.redis_connection.connection_pool for node in queue.redis.get_primaries()]
    connections = [one for pool in pools for one in pool._available_connections]
    assert len(connections) >= len(pools) == 3
    queue.close()
    assert [one._sock for one in connections if one._sock is not None] == []
