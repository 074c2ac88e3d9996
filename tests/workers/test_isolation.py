"""A job that was charged with a crash runs alone: the next crash names its culprit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Call, Queue
from rqueue.model.ids import new_id
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, causes, eventually, go, pop, started
from tests.workers.test_poison import ended, rows

MakePool = Callable[..., Pool]
APP = "tests.workers.isolation_app"


def begun(client: redis.Redis, key: str) -> list[dict[str, Any]]:
    """What each attempt saw when it began."""
    said: Any = client.lrange(f"{key}:begun", 0, -1)
    return [json.loads(one) for one in said]


def beside_a_crashed_one(client: redis.Redis, key: str) -> list[dict[str, Any]]:
    """Attempts that began beside one of a crashed job, or were one and began beside another."""
    return [
        one
        for one in begun(client, key)
        if one["beside"] and (one["crashes"] or any(crashes for _, crashes in one["beside"]))
    ]


@contextmanager
def about_to_be_charged(
    queue: Queue, client: redis.Redis, *jobs: JobHandle[Any]
) -> Iterator[Callable[[], object]]:
    """All that waits is held by a consumer; what is given charges it with a crash."""
    with queue.consumer(jobs=len(jobs), name="dead") as dead:
        assert {job.id for job in dead.pull()} == {job.id for job in jobs}
        ran = [commands.Ran(job.id) for job in jobs]
        call = commands.reclaim(queue.keys, dead.name, b'{"kind":"crash"}', ran)
        yield lambda: execute(client, call)


@pytest.mark.parametrize(
    ("tasks", "jobs", "beside", "options"),
    [
        ("threads", 20, 7, {"threads": 8}),
        ("threads", 60, 7, {"threads": 8, "prefetch": 60}),
        ("threads", 30, 3, {"threads": 4, "processes": 2}),
        ("loop", 60, 59, {"async_slots": 200}),
        ("loop", 30, 3, {"async_slots": 4, "processes": 2, "prefetch": 10}),
        ("main", 10, 0, {"processes": 2, "async_slots": 4}),
    ],
)
def test_what_ran_beside_poison_is_charged_once_and_ends_well(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    tasks: str,
    jobs: int,
    beside: int,
    options: dict[str, Any],
) -> None:
    suffix = "_on_loop" if tasks == "loop" else ""
    poison = queue.send(f"die_beside{suffix}", [queue_name, beside])
    innocents = queue.enqueue_many(Call(f"beside{suffix}", (queue_name,)) for _ in range(jobs))
    pool = make_pool(app=[APP], **options)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert causes(queue, poison.id) == [("crash", "exit code 3")] * 3
    assert poison.state() is JobState.DEAD
    assert [job.state() for job in innocents] == [JobState.DONE] * jobs
    charged = Counter(row["id"] for row in rows(queue, "crash"))
    assert charged.pop(poison.id) == 2
    assert len(charged) >= beside
    assert set(charged.values()) <= {1}
    assert not (wrong := beside_a_crashed_one(client, queue_name)), wrong
    assert pool.drained() == Exit.OK


def test_a_crashed_job_does_not_stop_a_process_that_runs_a_long_one(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """It waits for a while, then aside, in its place, and the others go on; it runs in the end."""
    said = f"{queue_name}-said"
    crashed = queue.send("note", [said, "crashed"])
    with about_to_be_charged(queue, client, crashed) as charge:
        pool = make_pool(threads=2, async_slots=2)
        long = queue.send("hold", [queue_name])
        started(client, queue_name)
        charge()
    eventually(lambda: crashed.state() is JobState.SCHEDULED, lambda: pool.log)
    behind = queue.enqueue_many(Call("note", (said, str(i))) for i in range(20))
    for _ in behind:
        assert pop(client, said) != "crashed"
    assert long.state() is JobState.HELD
    go(client, queue_name)
    assert pop(client, said) == "crashed"
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert crashed.state() is JobState.DONE
    assert [row["id"] for row in rows(queue, "snooze")][:1] == [crashed.id]
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize("many", [2, 30])
def test_crashed_jobs_beside_a_long_one_do_not_stop_their_process_by_turns(
    many: int, queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """The process rests from waiting, whichever of them comes."""
    said = f"{queue_name}-said"
    crashed = [queue.send("note", [said, "crashed"]) for _ in range(many)]
    with about_to_be_charged(queue, client, *crashed) as charge:
        pool = make_pool(threads=4)
        long = queue.send("hold", [queue_name])
        started(client, queue_name)
        charge()
    for i in range(100):
        queue.send("note", [said, str(i)])
        assert pop(client, said) == str(i)
    assert long.state() is JobState.HELD
    go(client, queue_name)
    assert [pop(client, said) for _ in crashed] == ["crashed"] * many
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert {job.state() for job in crashed} == {JobState.DONE}
    assert pool.drained() == Exit.OK


def test_crashed_jobs_go_to_a_process_that_is_free(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """The one that runs a long job passes them on."""
    said = f"{queue_name}-said"
    crashed = [queue.send("note", [said, "crashed"]) for _ in range(5)]
    with about_to_be_charged(queue, client, *crashed) as charge:
        pool = make_pool(threads=4, processes=2)
        pool.said("is ready", 2)
        long = queue.send("hold", [queue_name])
        started(client, queue_name)
        charge()
    assert [pop(client, said) for _ in crashed] == ["crashed"] * 5
    assert long.state() is JobState.HELD
    go(client, queue_name)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert not rows(queue, "snooze")
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize(
    ("body", "where"), [(b'["nobody_knows",[]]', JobState.PARKED), (b'["note"', JobState.DEAD)]
)
def test_a_crashed_job_that_cannot_run_waits_for_nobody(
    body: bytes,
    where: JobState,
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
) -> None:
    """It is looked at before the others of its process are waited for."""
    unfit = queue.job(new_id())
    queue.enqueue_puts([Put(unfit.id, body)])
    with about_to_be_charged(queue, client, unfit) as charge:
        pool = make_pool(threads=2)
        long = queue.send("hold", [queue_name])
        started(client, queue_name)
        charge()
    eventually(lambda: unfit.state() is where, lambda: f"{unfit.state()}\n{pool.log}")
    assert long.state() is JobState.HELD
    go(client, queue_name)
    eventually(lambda: long.state() is JobState.DONE, lambda: pool.log)
    assert not rows(queue, "snooze")
    assert pool.drained() == Exit.OK


def test_what_ended_before_a_crashed_job_in_the_main_thread_does_not_run_again(
    queue: Queue, client: redis.Redis, make_pool: MakePool
) -> None:
    """It is settled first: the crash that may come takes nothing with it."""
    poison = queue.send("die_at_once")
    with about_to_be_charged(queue, client, poison) as charge:
        charge()
    queue.pause()
    quick = queue.enqueue_many([Call("here", options=Options(priority=9))] * 3)
    queue.resume()
    pool = make_pool(app=[APP], async_slots=0, prefetch=10)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert poison.state() is JobState.DEAD
    deliveries = {row["id"]: row["deliveries"] for row in rows(queue, "ack")}
    assert deliveries == {job.id: 0 for job in quick}
    assert pool.drained() == Exit.OK
