"""A job that was charged with a crash runs alone: the next crash names its culprit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.model.job import JobState
from rqueue.protocol import commands
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
    with queue.consumer(jobs=1, name="dead") as dead:
        assert [job.id for job in dead.pull()] == [crashed.id]
        pool = make_pool(threads=2, async_slots=2)
        long = queue.send("hold", [queue_name])
        started(client, queue_name)
        ran = [commands.Ran(crashed.id)]
        execute(client, commands.reclaim(queue.keys, dead.name, b'{"kind":"crash"}', ran))
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
