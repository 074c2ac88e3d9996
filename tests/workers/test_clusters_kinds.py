"""Pools on a Redis Cluster: what jobs do beside running, each in a queue on another master."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobCancelled
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from rqueue.tasks.workflow import chain, chord
from tests.support.patience import PATIENCE
from tests.support.redis_cluster import SmallCluster
from tests.workers.pools import Pool, eventually, go, pop, started
from tests.workers.workflows_app import adouble, double, fails, listed

APP = [
    f"tests.workers.{name}_app"
    for name in ("child", "groups", "reporting", "steps", "supervisor", "workflows")
]
THREADS = pytest.mark.parametrize("threads", [0, 2])


@pytest.fixture
def queues(redis_cluster: SmallCluster, queue_name: str) -> Iterator[list[Queue]]:
    """Three queues, each on another master."""
    names = redis_cluster.queues_everywhere(queue_name)
    with Queue(names[0], redis_cluster.cluster_url) as first:
        yield [first.at(name) for name in names]


@pytest.fixture
def pool_of(
    make_pool: Callable[..., Pool], server: EmbeddedRedis, redis_cluster: SmallCluster
) -> Callable[..., Pool]:
    """Starts a pool for some queues; its jobs speak to the test over a server that is no part of
    the cluster."""

    def make(queues: list[Queue], cluster: SmallCluster = redis_cluster, **options: Any) -> Pool:
        names = [queue.name for queue in queues]
        options = {"app": APP, "queues": names, "tell": server.url, **options}
        return make_pool(cluster.cluster_url, **options)

    return make


# -- workflows -------------------------------------------------------------------------------------


@THREADS
def test_a_workflow_goes_through_queues_on_all_nodes(
    queues: list[Queue], pool_of: Callable[..., Pool], threads: int
) -> None:
    """Chains of sync and async tasks from node to node, and a callback that gets all their results
    in the order of the members."""
    pool = pool_of(queues, threads=threads)
    here, there, third = (queue.name for queue in queues)
    members = [
        chain(
            double.options(queue=[here, there, third][n % 3]).s(n),
            adouble.options(queue=[there, third, here][n % 3]).s(),
        )
        for n in range(12)
    ]
    flow = chord(members, listed.options(queue=third).s())
    handle = queues[2].enqueue_workflow(flow, spread=True)
    assert handle.result(PATIENCE) == [4 * n for n in range(12)]
    assert pool.drained() == 0


def test_a_workflow_that_fails_ends_on_all_nodes(
    queues: list[Queue], pool_of: Callable[..., Pool]
) -> None:
    pool = pool_of(queues)
    here, there, third = (queue.name for queue in queues)
    flow = chain(
        fails.options(queue=here).s(),
        double.options(queue=there).s(),
        double.options(queue=third).s(),
    )
    handle = queues[2].enqueue_workflow(flow, spread=True)
    with pytest.raises(JobCancelled):
        handle.result(PATIENCE)
    assert pool.drained() == 0


def test_the_end_of_a_job_waits_for_the_node_of_who_waits_for_it(
    make_cluster: Callable[..., SmallCluster], pool_of: Callable[..., Pool], queue_name: str
) -> None:
    """What goes to a third node goes meanwhile, from the same queue."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    names = cluster.queues_everywhere(queue_name)
    with Queue(names[0], cluster.cluster_url) as here:
        away, third = here.at(names[1]), here.at(names[2])
        waits = chain(double.options(queue=here.name).s(1), double.options(queue=away.name).s())
        beside = chain(double.options(queue=here.name).s(5), double.options(queue=third.name).s())
        late = away.enqueue_workflow(waits, spread=True)
        node = cluster.home(away.name)
        pool = pool_of([here, third], cluster, lease="2s")
        pool.said("is ready")
        node.server.kill()
        early = third.enqueue_workflow(beside, spread=True)
        assert early.result(PATIENCE) == 20
        node.server.start()
        cluster.settle()
        other = pool_of([away], cluster)
        assert late.result(PATIENCE) == 4
        assert [one.drained() for one in (pool, other)] == [0, 0]


# -- what a job keeps and says ---------------------------------------------------------------------


@pytest.mark.parametrize(("task", "threads"), [("c.order", 0), ("c.order", 2), ("c.aorder", 0)])
def test_a_step_is_done_once_through_a_kill(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
    task: str,
    threads: int,
) -> None:
    pool = pool_of(queues, threads=threads)
    for queue in queues:
        key = f"{queue_name}-{queue.name}"
        queue.send("pid", [f"{key}-pid"])
        worker = int(pop(client, f"{key}-pid"))
        job = queue.send(task, [key])
        assert [pop(client, key), pop(client, key)] == ["charged", "in"]
        os.kill(worker, signal.SIGKILL)
        assert pop(client, key) == "in"  # not charged again
        go(client, key)
        result = job.result(PATIENCE)
        assert result["number" if task == "c.aorder" else "charge"]
    assert pool.drained() == 0


@pytest.mark.parametrize(("task", "threads"), [("c.loop", 2), ("c.aloop", 0)])
def test_a_loop_goes_on_in_another_pool(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
    task: str,
    threads: int,
) -> None:
    pool = pool_of(queues, threads=threads)
    job = queues[1].send(task, [queue_name, 5])
    assert [pop(client, queue_name) for _ in range(4)] == ["1", "2", "3", "third"]
    assert pool.drained() == 0
    pool = pool_of(queues, threads=threads)
    assert job.result(PATIENCE) == "over"
    assert [pop(client, queue_name), pop(client, queue_name)] == ["4", "5"]
    assert pool.drained() == 0


@THREADS
def test_progress_and_lines_are_seen_as_they_come(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
    threads: int,
) -> None:
    pool = pool_of(queues, threads=threads)
    for queue in queues:
        key = f"{queue_name}-{queue.name}"
        job = queue.send("c.pages", [key])
        seen: list[str] = []
        for update in job.watch(PATIENCE):
            if update.progress and update.progress.text not in seen:
                seen.append(update.progress.text)
                if len(seen) < 3:
                    go(client, key)
        assert seen[:2] == ["first", "second"]
        key = f"{key}-lines"
        job = queue.send("c.logs", [key])
        heard: list[str] = []
        for update in job.watch(PATIENCE):
            heard += [line.text for line in update.lines]
            if len(heard) == 2:
                go(client, key)
        assert heard == ["page 1 of two", "careful", "last"]
    assert pool.drained() == 0


# -- what a queue keeps of its jobs ----------------------------------------------------------------


def test_a_declared_schedule_is_that_of_its_queue(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = queues[1]
    monkeypatch.setenv("TEST_QUEUE", there.name)
    pool = pool_of(queues, app=["tests.workers.schedules_app"])
    beats = [int(pop(client, f"{there.name}:beats")) for _ in range(3)]
    assert beats == list(range(beats[0], beats[0] + 3))
    assert [[info.name for info in queue.schedules.list()] for queue in queues] == [
        [],
        ["beat"],
        [],
    ]
    assert pool.drained() == 0


@THREADS
def test_of_jobs_that_are_alike_there_is_one_in_each_queue(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
    threads: int,
) -> None:
    pool = pool_of(queues, threads=threads)
    once = Options(unique=Unique())
    for queue in queues:
        job = queue.send("hold", [queue_name], None, once)
        started(client, queue_name)
        again = queue.send("hold", [queue_name], None, once)
        assert (again.created, again.id) == (False, job.id)
        go(client, queue_name)
        assert job.result(PATIENCE) == "done"
        after = queue.send("hold", [queue_name], None, once)
        assert after.created
        started(client, queue_name)
        go(client, queue_name)
        assert after.result(PATIENCE) == "done"
    assert pool.drained() == 0


@THREADS
def test_a_limit_holds_in_each_queue_by_itself(
    queues: list[Queue],
    pool_of: Callable[..., Pool],
    client: redis.Redis,
    queue_name: str,
    threads: int,
) -> None:
    """One at a time of a queue, in two processes; those of other nodes run meanwhile."""
    options = Options(limit=JobLimit("crm", 1))
    for queue in queues:
        events = f"{queue_name}-{queue.name}"
        queue.enqueue_many(
            Call("in_turn", [events, "crm", number, ""], options=options) for number in range(10)
        )
    pool = pool_of(queues, processes=2, threads=threads)
    for queue in queues:
        events = f"{queue_name}-{queue.name}"
        eventually(lambda events=events: client.llen(events) == 20, lambda: pool.log)
        said: Any = client.lrange(events, 0, -1)
        words = [event.decode().split()[::2] for event in said]
        for begin, end in zip(words[::2], words[1::2], strict=True):
            assert (begin[0], begin[1]) == ("begin", end[1]), words
    assert pool.drained() == 0


def test_async_jobs_of_all_nodes_run_side_by_side(
    queues: list[Queue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    """In one process: each waits until the others have begun. One that is cancelled stops."""
    pool = pool_of(queues)
    jobs = [queue.send("c.agate", [queue_name, queue.name]) for queue in queues]
    assert {pop(client, queue_name) for _ in queues} == {queue.name for queue in queues}
    assert jobs[0].cancel()
    assert pop(client, queue_name) == "cancelled"
    for _ in jobs[1:]:
        go(client, queue_name)
    assert [job.result(PATIENCE) for job in jobs[1:]] == ["through"] * 2
    assert pool.drained() == 0


def test_jobs_of_all_nodes_run_in_the_threads_of_one_process(
    queues: list[Queue], pool_of: Callable[..., Pool], client: redis.Redis, queue_name: str
) -> None:
    pool = pool_of(queues, threads=3)
    jobs = [queue.send("who", [queue_name]) for queue in queues]
    worker = {started(client, queue_name) for _ in queues}
    assert len(worker) == 1
    for _ in queues:
        go(client, queue_name)
    assert {job.result(PATIENCE) for job in jobs} == worker
    assert pool.drained() == 0
